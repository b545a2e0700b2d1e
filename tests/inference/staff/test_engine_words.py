"""A check or a phase that pages have no word for would be shown by its code."""

from inference.gpu import logtail
from inference.simulator.check import CHECKS as OF_ENGINE
from inference.smoke import CHECKS
from inference.staff import engine_words


def test_every_check_has_a_name() -> None:
    before = {"weights", "disk", "memory", "port"}

    assert {check.name for check in CHECKS} | before | {*OF_ENGINE, "capacity"} == set(
        engine_words.CHECKS
    )


def test_every_phase_has_a_name() -> None:
    phases = [name for name, _share, _pattern in logtail._PHASES]
    assert {logtail.progress([]).phase, *phases} == set(engine_words.PHASES)


def test_a_check_that_an_engine_names_itself_keeps_its_name() -> None:
    assert engine_words.check("new_check") == "new_check"
