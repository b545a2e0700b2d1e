"""Swaps on the pages: approved by another, watched, decided about."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import formats, timezone
from pytest_django import Settings

from inference.models import FleetEvent, Replica, Server, Swap, SwapClaim
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.pages import Fleet, html
from tests.people import signed_in

pytestmark = pytest.mark.django_db
FORMAT = "SHORT_DATETIME_FORMAT"


# -- Deciding ---------------------------------------------------------------------------------
def test_another_admin_approves(
    admin: User, other_admin: User, fleet: Fleet, settings: Settings
) -> None:
    settings.SWAP_SECOND_ADMIN = True
    swap = rows.swap(fleet[0], fleet[2], admin)
    path = f"/staff/swaps/{swap.pk}/"
    hers, theirs = signed_in(admin), signed_in(other_admin)
    assert "Another admin has to approve it" in html(hers.get(path))
    assert (offered(hers, path), offered(theirs, path)) == ({"cancel"}, {"approve", "cancel"})
    page = html(hers.post(f"{path}approve/", follow=True))
    assert "Somebody else has to approve" in page
    theirs.post(f"{path}approve/")
    swap.refresh_from_db()
    assert (swap.state, swap.approved_by) == ("approved", other_admin)


@pytest.mark.parametrize("state", ["suspect", "bad", "ok"])
def test_what_the_watcher_found_is_shown(state: str, admin: User, fleet: Fleet) -> None:
    """On the swap's page beside the seconds, which go on while it is in doubt, and on its own."""
    slot, (one, *_), new = fleet
    swap = rows.swap(slot, new, admin, state="running")
    verdict = {"state": state, "code": "" if state == "ok" else "watch_behind"}
    Replica.objects.filter(pk=one.pk).update(model=new, swap=swap, watch={"verdict": verdict})
    rows.part(swap, one, "watched", state_since=timezone.now())
    client = signed_in(admin)
    for path in (f"/staff/swaps/{swap.pk}/", f"/staff/replicas/{one.pk}/"):
        page = html(client.get(path))
        assert ("First tokens come far later" in page) == (state != "ok")
        assert ("In doubt, so it is looked at more often:" in page) == (state == "suspect")


ALL = ("approve", "start", "cancel", "pause", "resume", "abort", "retry")


def offered(client: Client, path: str) -> set[str]:
    page = client.get(path).content.decode()
    return {act for act in ALL if f'action="{path}{act}/"' in page}


@pytest.mark.parametrize(
    ("state", "fields", "acts"),
    [
        ("planned", {}, {"approve", "cancel"}),
        ("approved", {}, {"cancel"}),
        ("running", {}, {"pause", "abort"}),
        ("running", {"paused_at": timezone.now()}, {"resume", "abort"}),
        ("running", {"abort_asked": True}, set()),
        ("returning", {}, set()),
        ("done", {}, set()),
        ("failed", {}, {"retry"}),
        ("aborted", {}, {"retry"}),
        ("cancelled", {}, {"retry"}),
    ],
)
def test_buttons_follow_the_state(
    state: str, fields: dict[str, Any], acts: set[str], admin: User, other_admin: User, fleet: Fleet
) -> None:
    swap = rows.swap(fleet[0], fleet[2], other_admin, state=state, **fields)
    assert offered(signed_in(admin), f"/staff/swaps/{swap.pk}/") == acts


@pytest.mark.parametrize(
    ("state", "act", "after"),
    [
        ("planned", "approve", {"state": "approved"}),
        ("planned", "cancel", {"state": "cancelled"}),
        ("running", "abort", {"abort_asked": True}),
        ("running", "pause", {"state": "running"}),
    ],
)
def test_a_second_click_is_harmless(
    state: str, act: str, after: dict[str, Any], admin: User, other_admin: User, fleet: Fleet
) -> None:
    swap = rows.swap(fleet[0], fleet[2], other_admin, state=state)
    path, client = f"/staff/swaps/{swap.pk}/{act}/", signed_in(admin)
    client.post(path)
    page = html(client.post(path, follow=True))
    assert "notice bad" not in page.split("<h1>")[0]
    swap.refresh_from_db()
    assert {name: getattr(swap, name) for name in after} == after
    assert FleetEvent.objects.filter(swap=swap, actor=admin).count() == 1


def test_what_has_gone_on_meanwhile_is_told(admin: User, other_admin: User, fleet: Fleet) -> None:
    swap = rows.swap(fleet[0], fleet[2], other_admin, state="done")
    client = signed_in(admin)
    for act in ("approve", "cancel", "pause", "resume", "abort", "start"):
        page = html(client.post(f"/staff/swaps/{swap.pk}/{act}/", follow=True))
        assert "changed meanwhile" in page, act
    swap.refresh_from_db()
    assert swap.state == "done"
    assert client.post(f"/staff/swaps/{swap.pk}/explode/").status_code == 404
    assert client.get(f"/staff/swaps/{swap.pk}/approve/").status_code == 405


def test_retry_makes_one_new_swap(admin: User, other_admin: User, fleet: Fleet) -> None:
    swap = rows.swap(fleet[0], fleet[2], other_admin, state="failed", drain_seconds=60)
    client = signed_in(admin)
    first = client.post(f"/staff/swaps/{swap.pk}/retry/")
    second = client.post(f"/staff/swaps/{swap.pk}/retry/")
    assert first["Location"] == second["Location"]
    again = Swap.objects.get(retry_of=swap)
    assert (again.state, again.drain_seconds, again.proposed_by) == ("planned", 60, admin)


# -- Watching ---------------------------------------------------------------------------------
def under_way(swap: Swap, one: Replica, state: str, **fields: Any) -> None:
    Replica.objects.filter(pk=one.pk).update(state=state, swap=swap, **fields)
    rows.part(swap, one, "changing")


CHECKING = "Nothing has been touched."
NEXT = "The next replica is about to begin."
LAST = "All replicas serve the new model. The swap is being finished."


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (("waiting", "waiting"), CHECKING),
        (("done", "waiting"), NEXT),
        (("done", "done"), LAST),
        (("changing", "waiting"), "gpu-1:8101: serving."),
    ],
)
def test_between_replicas_the_sentence_is_true(
    states: tuple[str, str], said: str, admin: User, fleet: Fleet
) -> None:
    slot, replicas, new = fleet
    swap = rows.swap(slot, new, admin, state="running")
    for one, state in zip(replicas, states, strict=True):
        rows.part(swap, one, state)
    client = signed_in(admin)
    page = html(client.get(f"/staff/swaps/{swap.pk}/"))
    found = [sentence for sentence in (CHECKING, NEXT, LAST) if sentence in page]
    assert (said in page, found) == (True, [said] if said in (CHECKING, NEXT, LAST) else [])


def test_a_paused_swap_is_called_so_everywhere(admin: User, fleet: Fleet) -> None:
    slot, _replicas, new = fleet
    swap = rows.swap(slot, new, admin, state="running", paused_at=timezone.now())
    client = signed_in(admin)
    for address in (f"/staff/swaps/{swap.pk}/", "/staff/swaps/", "/staff/"):
        page = html(client.get(address))
        assert ('<span class="badge wait">paused</span>' in page, ">running<" in page) == (
            True,
            False,
        )
    assert "</a>: paused" in html(client.get("/staff/slots/"))


def test_draining_says_what_still_runs(admin: User, fleet: Fleet) -> None:
    slot, replicas, new = fleet
    swap = rows.swap(slot, new, admin, state="running")
    under_way(swap, replicas[0], "draining", in_flight=3)
    rows.steps(swap, replicas[0], ["draining"], seconds=43)
    page = html(signed_in(admin).get(f"/staff/swaps/{swap.pk}/"))
    assert "3 requests still run." in page
    assert "gpu-1:8101: draining." in page
    assert "Alder 35B A3B (1 replica)" in page  # the other one serves


def test_loading_shows_times_progress_and_log(admin: User, fleet: Fleet) -> None:
    slot, replicas, new = fleet
    swap = rows.swap(slot, new, admin, state="running")
    under_way(swap, replicas[0], "starting", model=new, instance="r1-g2-v9")
    server = Server.objects.get()
    rows.tell(server, "r1-g2-v9")
    rows.steps(swap, replicas[0], ["draining", "stopping", "starting"], seconds=95)
    answer = signed_in(admin).get(f"/staff/swaps/{swap.pk}/")
    page = html(answer)
    assert "loading weights · 41 %" in page
    assert "Loading safetensors checkpoint shards" in page
    steps = answer.context["page"].parts[0].steps
    found = [(step.state, step.begun, step.is_now, step.seconds) for step in steps]
    assert [(state, begun, now) for state, begun, now, _ in found] == [
        ("draining", True, False),
        ("stopping", True, False),
        ("starting", True, True),
        ("checking", False, False),
        ("joining", False, False),
        ("serving", False, False),
    ]
    assert [round(seconds or 0) for *_, seconds in found[:2]] == [95, 95]


def test_a_failure_names_step_reason_and_what_serves(admin: User, fleet: Fleet) -> None:
    slot, replicas, new = fleet
    failure = {"error_code": "kv_cache_too_small", "error_step": "start"}
    swap = rows.swap(slot, new, admin, state="failed", error_detail="19.27 GiB", **failure)
    rows.steps(swap, replicas[0], ["draining", "stopping", "starting"], seconds=60)
    rows.steps(swap, replicas[0], ["stopping"], seconds=50, detail="kv_cache_too_small")
    page = html(signed_in(admin).get(f"/staff/swaps/{swap.pk}/"))
    sentence = "What the weights leave of the memory does not hold one full context."
    assert f"<strong>Start:</strong> {sentence}" in page
    assert "19.27 GiB" in page
    assert "Alder 35B A3B (2 replicas)" in page
    assert '<li class="failed">' in page


def test_after_a_failed_start_no_further_steps_are_promised(admin: User, fleet: Fleet) -> None:
    slot, replicas, new = fleet
    swap = rows.swap(slot, new, admin, state="running")
    under_way(swap, replicas[0], "stopping", error_code="smoke_hang")
    rows.steps(swap, replicas[0], ["draining", "stopping", "starting", "checking"], seconds=60)
    rows.steps(swap, replicas[0], ["stopping"], seconds=5, detail="smoke_hang")
    client, path = signed_in(admin), f"/staff/swaps/{swap.pk}/"
    steps = client.get(path).context["page"].parts[0].steps
    assert [(step.state, step.code) for step in steps[3:]] == [
        ("checking", "smoke_hang"),
        ("stopping", ""),
    ]
    rows.steps(swap, replicas[0], ["failed", "starting"], seconds=1)
    steps = client.get(path).context["page"].parts[0].steps
    assert [step.state for step in steps[4:]] == ["stopping", "starting"]


def test_a_replica_that_was_never_touched_does_not_wait(admin: User, fleet: Fleet) -> None:
    swap = rows.swap(fleet[0], fleet[2], admin, state="failed", error_code="died")
    page = html(signed_in(admin).get(f"/staff/swaps/{swap.pk}/"))
    assert (page.count(">not touched<"), page.count(">waiting<")) == (2, 0)


def test_checks_that_refused_are_shown(admin: User, fleet: Fleet) -> None:
    slot, replicas, new = fleet
    swap = rows.swap(
        slot, new, admin, state="failed", error_code="parser_unknown", error_step="preflight"
    )
    check = {"name": "parsers", "ok": False, "code": "parser_unknown", "detail": "qwen9_coder"}
    rows.part(swap, replicas[0], "waiting", preflight=[check])
    page = html(signed_in(admin).get(f"/staff/swaps/{swap.pk}/"))
    said = "It failed before anything was touched: the check “parsers” did not pass for gpu-1:8101."
    assert said in page
    assert "qwen9_coder" in page


def test_a_failed_smoke_test_names_its_check(admin: User, fleet: Fleet) -> None:
    slot, replicas, new = fleet
    failure = {"error_code": "smoke_tool_call_lost", "error_step": "smoke"}
    swap = rows.swap(slot, new, admin, state="failed", **failure)
    lost = {
        "name": "tools",
        "ok": False,
        "code": "smoke_tool_call_lost",
        "detail": "",
        "seconds": 1,
    }
    rows.part(swap, replicas[1], "restored", checks=[*rows.CHECKS[:2], lost])
    client, path = signed_in(admin), f"/staff/swaps/{swap.pk}/"
    page = html(client.get(path))
    said = "It failed at the smoke test: the check “tools” did not pass on gpu-1:8102."
    assert f"{said} What it had changed was put back: the old model served again." in page
    assert "<strong>Smoke test (tools):</strong> Asked to use a tool" in page
    for left in ("down", "kept"):
        rows.part(swap, replicas[1], left)
        page = html(client.get(path))
        assert f"{said} Not everything could be put back: gpu-1:8102." in page
        assert "was put back" not in page


# -- Waiting ----------------------------------------------------------------------------------
def test_it_says_which_server_it_waits_for_and_since_when(admin: User, fleet: Fleet) -> None:
    slot, replicas, new = fleet
    since = timezone.localtime() - timedelta(hours=2)
    Server.objects.update(reported_at=since)
    swap = rows.swap(slot, new, admin, state="running", waiting_code="server_silent")
    client, path = signed_in(admin), f"/staff/swaps/{swap.pk}/"
    page = html(client.get(path))
    link = '<a href="/staff/servers/gpu-1/">gpu-1</a>'
    assert f"{link} has not reported since {formats.date_format(since, FORMAT)} (2 h ago)." in page
    assert ("It waits. Nothing has been touched." in page, "are checking" in page) == (True, False)
    rows.part(swap, replicas[0], "done")
    assert "It waits before the next replica." in html(client.get(path))
    Server.objects.update(reported_at=None)
    assert f"{link} has never reported." in html(client.get(path))
    for one in replicas:
        rows.part(swap, one, "done")
    assert link not in html(client.get(path))  # nothing is left to do there


def test_it_names_the_replica_and_the_swap_that_it_waits_for(admin: User, fleet: Fleet) -> None:
    slot, replicas, new = fleet
    swap = rows.swap(slot, new, admin, state="running", waiting_code="others_not_serving")
    Replica.objects.filter(pk=replicas[1].pk).update(state="failed")
    client, path = signed_in(admin), f"/staff/swaps/{swap.pk}/"
    page = html(client.get(path))
    assert (
        f'<a href="/staff/replicas/{replicas[1].pk}/">gpu-1:8102</a> does not serve (down' in page
    )
    other = rows.swap(
        rows.slot("vectors", rows.catalogue_model("cedar")), new, admin, state="running"
    )
    SwapClaim.objects.create(server=Server.objects.get(), swap=other)
    began = {"state": "approved", "waiting_code": "server_busy", "start_at": timezone.now()}
    Swap.objects.filter(pk=swap.pk).update(**began)
    page = html(client.get(path))
    assert f'<a href="/staff/swaps/{other.pk}/">A swap of Vectors</a> is changing gpu-1.' in page
    assert "Approved. It waits for a server that another swap is changing." in page


def test_it_asks_again_until_it_is_over(admin: User, fleet: Fleet) -> None:
    slot, replicas, new = fleet
    swap, client = rows.swap(slot, new, admin, state="running"), signed_in(admin)
    page = client.get(f"/staff/swaps/{swap.pk}/").content.decode()
    address = page.split('id="live" hidden hx-get="')[1].split('"')[0].replace("&amp;", "&")
    under_way(swap, replicas[0], "draining", in_flight=2)
    answer = client.get(address, headers={"hx-request": "true"}).content.decode()
    changed = {one.split('"')[0] for one in answer.split("innerHTML:#")[1:]}
    assert changed == {"swap-said", "swap-head", f"replica-{replicas[0].pk}"}
    assert 'id="live"' in answer
    Swap.objects.filter(pk=swap.pk).update(state="done", finished_at=timezone.now())
    answer = client.get(address, headers={"hx-request": "true"}).content.decode()
    assert ("swap-actions" in answer, 'id="live"' in answer) == (True, False)


def test_a_long_list_has_pages(admin: User, fleet: Fleet) -> None:
    slot, _replicas, new = fleet
    for _ in range(31):
        rows.swap(slot, new, admin, state="cancelled")
    client = signed_in(admin)
    page = client.get("/staff/swaps/")
    assert len(page.context["rows"]) == 30
    older = client.get(f"/staff/swaps/?before={page.context['following']}")
    assert len(older.context["rows"]) == 1
