"""The page of a swap that is over: how it ended and, apart from that, how things are now."""

from html import unescape

import pytest

from inference.models import Replica, Swap, SwapReplica
from inference.swaps import parts
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.pages import Fleet, html
from tests.inference.staff.test_swaps import offered
from tests.people import signed_in

pytestmark = pytest.mark.django_db
NEW_CAUSE = {"error_code": "kv_cache_too_small", "error_step": "start", "error_detail": "19.27 GiB"}
OLD_CAUSE = {
    "error_code": "port_taken",
    "error_detail": "[Errno 98] Address already in use",
    "last_log": ["OSError: [Errno 98] Address already in use"],
}


def left_down(swap: Swap, one: Replica) -> None:
    """As the going back leaves it: its new engine had failed, its old one as well."""
    Replica.objects.filter(pk=one.pk).update(state="failed", model=None, instance="", **OLD_CAUSE)
    rows.part(swap, one, "returning", log=["ValueError: the new engine's last line"])
    parts.mark(SwapReplica.objects.get(swap=swap, replica=one), SwapReplica.State.DOWN)


def serves_again(one: Replica, **fields: object) -> None:
    again = {"state": "serving", "model": one.slot.model, "error_code": "", "error_detail": ""}
    Replica.objects.filter(pk=one.pk).update(**{**again, "last_log": [], **fields})


def test_both_causes_are_told_also_when_it_serves_again(admin: User, fleet: Fleet) -> None:
    slot, replicas, new = fleet
    swap = rows.swap(slot, new, admin, state="failed", **NEW_CAUSE)
    left_down(swap, replicas[0])
    client, path = signed_in(admin), f"/staff/swaps/{swap.pk}/"
    for _ in range(2):
        page = html(client.get(path))
        for said in (
            "Why the new model, Birch 27B, was given up: </p>",
            "What the weights leave of the memory does not hold one full context.",
            "19.27 GiB",
            "Why the old model, Alder 35B A3B, did not come back on gpu-1:8101: </p>",
            "Another program listens at the replica&#x27;s port.",
            '<p class="small mono">[Errno 98] Address already in use</p>',
        ):
            assert said in page
        log = page.split('id="log-of-')[1].split("</details>")[0]
        new_log, old_log = log.split("The old model, Alder 35B A3B")
        assert ("The new model, Birch 27B" in new_log, "OSError" in new_log) == (True, False)
        assert "ValueError: the new engine&#x27;s last line" in new_log
        assert "OSError: [Errno 98] Address already in use" in old_log
        serves_again(replicas[0])


def test_what_was_at_its_end_stands_apart_from_what_is_now(admin: User, fleet: Fleet) -> None:
    slot, replicas, new = fleet
    swap = rows.swap(slot, new, admin, state="failed", **NEW_CAUSE)
    left_down(swap, replicas[0])
    rows.part(swap, replicas[1], "kept")
    Replica.objects.filter(pk=replicas[1].pk).update(model=new)
    client, path = signed_in(admin), f"/staff/swaps/{swap.pk}/"
    page = html(client.get(path))
    failed = "Not everything could be put back: gpu-1:8101, gpu-1:8102."
    assert f"{failed} The slot's model does not serve there." in unescape(page)
    assert "Requests: 1" not in page
    Swap.objects.filter(pk=swap.pk).update(error_code="drain_deadline", error_detail="1")
    assert '<p class="small mono">Requests: 1</p>' in client.get(path).content.decode()
    serves_again(replicas[0])
    assert f"{failed} Look at gpu-1:8102." in html(client.get(path))
    serves_again(replicas[1])
    page = html(client.get(path))
    assert f"{failed} By now the slot's model serves there." in page
    assert "does not serve there" not in page
    assert "<dt>Left at its end</dt> <dd> down (1 replica), Birch 27B (1 replica) </dd>" in page
    now = page.split('<h2 id="slot-now">The slot now</h2>')[1].split("</section>")[0]
    assert "<dt>Serving now</dt> <dd> Alder 35B A3B (2 replicas)" in now
    assert ("Serving now" in page.replace(now, ""), "0 of 2" in page) == (False, False)
    marked = 'bad">{}</span> <span class="small muted">at the swap\'s end<'
    for state in ("down", "left on the new model"):
        card = page.split(marked.format(state))[1].split("</p> <p")[1]
        assert "Now: serving, Alder 35B A3B" in card.split("</p>")[0]


def test_a_later_swap_is_linked_and_no_button_is_in_vain(admin: User, fleet: Fleet) -> None:
    slot, _replicas, new = fleet
    swap = rows.swap(slot, new, admin, state="failed", **NEW_CAUSE)
    client, path = signed_in(admin), f"/staff/swaps/{swap.pk}/"
    page = html(client.get(path))
    assert (offered(client, path), "Later swap" in page) == ({"retry"}, False)
    later = rows.swap(slot, new, admin, state="running")
    page = html(client.get(path))
    assert (offered(client, path), f'<a href="/staff/swaps/{later.pk}/">' in page) == (set(), True)
    assert "Another swap of this slot is open." in page
    Swap.objects.filter(pk=later.pk).update(state="done")
    slot.model = new
    slot.save()
    page = html(client.get(path))
    assert (offered(client, path), f'<a href="/staff/swaps/{later.pk}/">' in page) == (set(), True)
    assert "planned again now. The slot serves this model already." in page
    assert "the old model serves" not in page
