"""What is said of a model beside the one that runs now."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.utils import translation

from inference.fit.weights import active_bytes
from inference.models import CatalogModel, Replica, Server, Slot
from members.models import Proposal, User, Vote
from members.voting import compare, languages, rounds
from tests.inference import fit
from tests.inference.names.conftest import model
from tests.members.voting.conftest import A, in_days, proposal_of
from tests.members.voting.test_proposals import propose

pytestmark = pytest.mark.django_db
CONFIGS = json.loads((Path(fit.__file__).parent / "configs.json").read_text())


def named(part: str) -> dict[str, Any]:
    entry = next(found for name, found in CONFIGS.items() if part in name)
    return dict(entry.get("config", entry))


def test_fit_and_loss_beside_the_current_model(
    slot: Slot, replica: Replica, voters: list[User], running: CatalogModel
) -> None:
    config = dict(named("Qwen"))
    row = propose(voters[0], slot)
    row.looked_up = {
        "config": config, "weights_bytes": 8 * 2**30, "context": 65_536, "licence": "mit",
        "capabilities": ["reasoning", "tools"],
    }  # fmt: skip
    card = compare.of_proposal(row)
    assert (card.look.gained, card.look.lost) == (["reasoning"], ["vision"])
    assert (card.look.context_before, card.look.context_after) == (100_000, 65_536)
    [fit] = card.look.fits
    assert (fit.server, fit.gpus, fit.replicas, fit.fits) == ("gpu-9", 1, 1, True)
    assert fit.at_32k is not None
    assert fit.at_32k > 0
    assert card.at_128k == fit.at_128k == 0  # longer than its context
    assert card.fits is True
    assert card.licence_words == "Free for any use, also commercial."
    assert "Images in requests would be refused." in card.clients
    assert fit.notes_words[0].startswith("This is an estimate")


def test_too_big_a_model_does_not_fit(slot: Slot, replica: Replica, voters: list[User]) -> None:
    row = propose(voters[0], slot)
    row.looked_up = {"config": named("Qwen"), "weights_bytes": 200 * 2**30, "context": 262_144}
    card = compare.of_proposal(row)
    assert (card.fits, card.at_32k, card.at_128k) == (False, 0, 0)


def test_what_is_not_known_is_said(slot: Slot, replica: Replica, voters: list[User]) -> None:
    card = compare.of_proposal(propose(voters[0], slot))
    assert (card.fits, card.at_32k, card.look.speed) == (None, None, "")
    Server.objects.update(gpus=[])
    assert compare.of_proposal(proposal_of(A)).fits is None


def test_what_it_can_do_is_lost_only_where_it_is_known(
    slot: Slot, replica: Replica, voters: list[User]
) -> None:
    row = propose(voters[0], slot)
    card = compare.of_proposal(row)
    assert (card.can_be_told, card.look.lost, card.lost_words) == (False, [], [])
    assert not any("would" in said for said in card.clients)
    assert "Whether it can use tools, read images or reason is not known." in card.clients
    row.looked_up = {"config": named("Qwen")}
    card = compare.of_proposal(row)
    assert (card.can_be_told, card.look.lost) == (True, ["tools", "vision"])


def test_speed_follows_what_is_read_for_each_token(
    slot: Slot, replica: Replica, voters: list[User], running: CatalogModel
) -> None:
    running.config, running.weights_mib = named("Qwen"), 60_000
    running.save()
    slot.refresh_from_db()
    row = propose(voters[0], slot)
    seen = []
    for mib in (20_000, 60_000, 120_000):
        row.looked_up = {"config": named("Qwen"), "weights_bytes": mib * 2**20}
        seen.append(compare.of_proposal(row).look.speed)
    assert seen == ["faster", "similar", "slower"]


def test_experts_that_rest_are_not_read() -> None:
    for name, entry in CONFIGS.items():
        config = entry.get("config", entry)
        text = config.get("text_config") or config
        active = active_bytes(config, 10**12)
        if text.get("num_experts_per_tok"):
            assert active is not None, name
            assert active < 0.6 * 10**12, name
        elif active is not None:
            assert active == 10**12, name


def test_the_ballot_keeps_what_was_said(prepared: Vote, replica: Replica, admin: User) -> None:
    Proposal.objects.filter(repo=A).update(
        looked_up={"config": named("Qwen"), "weights_bytes": 8 * 2**30, "context": 131_072}
    )
    shown = compare.cards(prepared)
    vote = rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(1))
    assert [card.look for card in compare.cards(vote)] == [card.look for card in shown]
    assert shown[1].look.fits[0].fits is True


def test_an_option_has_the_name_that_the_plan_will_have(prepared: Vote, admin: User) -> None:
    """Of the catalogue, also where the entry was made after it was put on the ballot."""
    assert prepared.candidates.get(code=A).title == "alpha-7B"
    model("alpha", title="Alpha 7B")
    CatalogModel.objects.filter(name="alpha").update(repo=A)
    vote = rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(1))
    assert [option.title for option in vote.candidates.all()] == ["Now-One", "Alpha 7B", "beta-32B"]


def test_languages_are_gained_and_lost_where_both_are_known(
    slot: Slot, replica: Replica, voters: list[User]
) -> None:
    """Those of the current model are what was found out when it was proposed."""
    row = propose(voters[0], slot)
    row.looked_up = {"languages": ["es", "en", "gl"]}
    before = compare.of_proposal(row)
    assert (before.gained_words, before.lost_words) == ([], [])
    assert before.speaks == ["Spanish", "English", "Galician"]
    Proposal.objects.create(
        slot=slot, repo="ORG/now-one", state="voted", typed={"languages": ["en", "de", "xx-q"]}
    )
    card = compare.of_proposal(row)
    assert (card.look.languages_gained, card.look.languages_lost) == (["es", "gl"], ["de", "xx-q"])
    assert card.gained_words == ["Spanish", "Galician"]
    assert card.lost_words == ["German", "xx-q"]
    with translation.override("es"):
        assert card.gained_words == ["español", "gallego"]
    assert compare.of_current(slot).speaks == ["English", "German", "xx-q"]
    assert compare.Look.from_json(card.look.to_json()) == card.look


@pytest.mark.parametrize(("reader", "named"), [("en", "Chinese"), ("es", "chino")])
def test_languages_have_the_names_that_the_reader_knows(reader: str, named: str) -> None:
    with translation.override(reader):
        assert languages.words(["zh", " ZH", "xx-q", ""]) == [named, named, "xx-q", ""]
