"""Before anything is touched: does the new model fit, and does it carry what the slot must?"""

from typing import Any

import pytest

from inference.models import (
    CatalogModel,
    FleetEvent,
    Measurement,
    Replica,
    Server,
    Slot,
    Swap,
    measured_with,
)
from inference.swaps import outlook, plan
from members.models import User
from tests.inference.fleet import rooms
from tests.inference.swaps.driving import PASSED, Room

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("told", "first", "second")]
HYBRID = {
    "model_type": "qwen3_next", "dtype": "bfloat16", "hidden_size": 2048, "intermediate_size": 5120,
    "num_hidden_layers": 48, "full_attention_interval": 4, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 256, "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
    "linear_num_value_heads": 32, "max_position_embeddings": 262_144, "vocab_size": 151_936,
}  # fmt: skip
PLAIN = {
    "model_type": "qwen3", "dtype": "bfloat16", "hidden_size": 2560, "intermediate_size": 9728,
    "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "max_position_embeddings": 40_960, "vocab_size": 151_936,
}  # fmt: skip


@pytest.fixture
def new(db: None) -> CatalogModel:
    return rooms.catalog_model("new-model", config=PLAIN, weights_mib=8200)


def measured(model: CatalogModel, requests: float) -> None:
    """On the kind of GPU that both replicas have: so many of the whole context at once."""
    server = Server.objects.get(name="one")
    Measurement.objects.create(
        model=model,
        measured_with=measured_with(model, server, [0]),
        kv_tokens=int(requests * model.context_length),
        concurrent=requests,
    )


def swap(slot: Slot, to: CatalogModel, admin: User, **least: int) -> tuple[Swap, dict[str, Any]]:
    """Run to its end; and what the first replica's check said."""
    Slot.objects.filter(pk=slot.pk).update(**least)
    slot.refresh_from_db()
    made = plan.plan(slot=slot, model=to, actor=None, watch_seconds=2, drain_seconds=60)
    plan.approve(swap=made, actor=admin)
    Room().until_over(made)
    part = made.parts.get(position=1)
    return made, next(check for check in part.preflight if check["name"] == "capacity")


def touched() -> bool:
    return FleetEvent.objects.filter(what__in=("draining", "stopping")).exists()


def carried(slot: Slot, model: CatalogModel) -> float:
    """By the estimate, both replicas together."""
    found = outlook.outlook(slot=slot, model=model).at_least
    assert found is not None
    return found


def test_what_carries_enough_passes(chat: Slot, new: CatalogModel, admin: User) -> None:
    least = int(carried(chat, new))
    assert least > 10
    done, check = swap(chat, new, admin, least_concurrent=least)
    assert (done.state, check["ok"], check["code"]) == ("done", True, "")


def test_one_request_more_than_it_carries_ends_it(
    chat: Slot, new: CatalogModel, admin: User
) -> None:
    would = carried(chat, new)
    ended, check = swap(chat, new, admin, least_concurrent=int(would) + 1)
    figures = f"{would:.1f} < {int(would) + 1}"
    assert (ended.state, ended.error_step, ended.error_code) == ("failed", "preflight", "capacity")
    assert (check["ok"], check["detail"], ended.error_detail) == (False, figures, figures)
    assert not touched()
    assert set(Replica.objects.values_list("state", "model__name")) == {("serving", "old-model")}


def test_an_engine_that_holds_less_than_was_estimated(
    chat: Slot, new: CatalogModel, admin: User
) -> None:
    measured(new, 3)
    ended, check = swap(chat, new, admin, least_concurrent=7)
    assert (ended.state, ended.error_code) == ("failed", "capacity_measured")
    assert (check["detail"], touched()) == ("6.0 < 7", False)


def test_an_engine_that_holds_more_than_was_estimated(
    chat: Slot, new: CatalogModel, admin: User
) -> None:
    would = carried(chat, new)
    measured(new, would)
    done, check = swap(chat, new, admin, least_concurrent=int(1.5 * would))
    assert (done.state, check["detail"]) == ("done", f"{2 * would:.1f}")


def test_one_that_has_served_there_fits_whatever_is_estimated(
    chat: Slot, new: CatalogModel, admin: User
) -> None:
    CatalogModel.objects.filter(pk=new.pk).update(weights_mib=90_000)
    new.refresh_from_db()
    ended, check = swap(chat, new, admin)
    assert (ended.error_code, check["code"], touched()) == ("does_not_fit", "does_not_fit", False)
    measured(new, 2)
    assert swap(chat, new, admin)[0].state == "done"


def test_the_flags_say_how_many_at_once(chat: Slot, new: CatalogModel, admin: User) -> None:
    """The cache holds more, but the engine computes no more."""
    CatalogModel.objects.filter(pk=new.pk).update(flags={"max-num-seqs": 2})
    new.refresh_from_db()
    ended, check = swap(chat, new, admin, least_concurrent=5)
    assert (ended.error_code, check["detail"]) == ("capacity", "4.0 < 5")
    assert swap(chat, new, admin, least_concurrent=4)[0].state == "done"


def test_a_context_that_is_too_short(chat: Slot, new: CatalogModel, admin: User) -> None:
    ended, check = swap(chat, new, admin, least_context=8193)
    assert (ended.state, ended.error_code) == ("failed", "context_too_short")
    assert (check["detail"], touched()) == ("8192 < 8193", False)
    assert swap(chat, new, admin, least_context=8192)[0].state == "done"


def test_shorter_requests_are_as_many_more_as_they_are_shorter(
    chat: Slot, new: CatalogModel
) -> None:
    whole = carried(chat, new)
    Slot.objects.update(least_context=2048)
    chat.refresh_from_db()
    assert carried(chat, new) == pytest.approx(4 * whole)
    measured(new, 10)
    assert carried(chat, new) == pytest.approx(80)


def test_but_not_where_each_keeps_a_state_of_constant_size(chat: Slot, new: CatalogModel) -> None:
    CatalogModel.objects.filter(pk=new.pk).update(config=HYBRID, context_length=131_072)
    new.refresh_from_db()
    whole = carried(chat, new)
    Slot.objects.update(least_context=1024)
    chat.refresh_from_db()
    estimated = carried(chat, new)
    assert estimated < 40 * whole  # and not 128 times as many
    measured(new, 5)
    assert carried(chat, new) == pytest.approx(10 * estimated / whole)


def test_the_replica_that_it_does_not_fit_is_the_one_that_is_named(
    chat: Slot, new: CatalogModel, second: Replica, admin: User
) -> None:
    small = rooms.server("two")
    rooms.say(small, gpus=[{**rooms.gpu(0), "total_mib": 8192}], engines={})
    Replica.objects.filter(pk=second.pk).update(server=small, gpus=[0])
    rooms.say(small, engines={second.instance: rooms.running()})
    ended, check = swap(chat, new, admin)
    assert (ended.error_code, check["ok"]) == ("does_not_fit", True)
    said = FleetEvent.objects.get(swap=ended, what="preflight_failed")
    assert (said.replica, said.detail) == (second, "does_not_fit")


def test_where_nothing_can_be_said_nothing_is_refused(
    chat: Slot, new: CatalogModel, admin: User
) -> None:
    CatalogModel.objects.filter(pk=new.pk).update(config={})
    new.refresh_from_db()
    done, check = swap(chat, new, admin, least_concurrent=500)
    assert (done.state, check["ok"], check["detail"]) == ("done", True, "")


def test_the_servers_own_checks_stand_beside_it(chat: Slot, new: CatalogModel, admin: User) -> None:
    done, _ = swap(chat, new, admin)
    assert [check["name"] for check in done.parts.get(position=2).preflight] == [
        *(check["name"] for check in PASSED),
        "capacity",
    ]
