"""A new swap on the pages: chosen, previewed, proposed."""

from datetime import timedelta

import pytest
from django.utils import formats, timezone
from pytest_django import Settings

from inference.models import CatalogModel, Server, Slot, Swap
from inference.swaps import plan
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.pages import CHOICE, NEW_SWAP, Fleet, html
from tests.people import signed_in

pytestmark = pytest.mark.django_db


def test_two_steps_without_a_script(admin: User, fleet: Fleet) -> None:
    client = signed_in(admin)
    page = html(client.get("/staff/swaps/new/"))
    assert ('<form method="get">' in page, 'value="birch"' in page) == (True, True)
    page = html(client.get(NEW_SWAP))
    assert ("Gained: reasoning" in page, "Lost:</strong> vision" in page) == (True, True)
    assert "The context stays at 32,768 tokens." in page
    assert "No gap: one replica after another" in page
    assert page.index("1. gpu-1:8101") < page.index("2. gpu-1:8102")
    answer = client.post(NEW_SWAP, CHOICE)
    swap = Swap.objects.get()
    assert answer["Location"] == f"/staff/swaps/{swap.pk}/"
    assert (swap.state, swap.proposed_by, swap.drain_seconds, swap.reason) == (
        "planned",
        admin,
        900,
        "Vote",
    )
    assert swap.parts.count() == 2


def test_the_preview_says_where_the_weights_are_missing(admin: User, fleet: Fleet) -> None:
    client = signed_in(admin)
    said = "does not have the weights yet."
    assert f'<a href="/staff/servers/gpu-1/">gpu-1</a> {said}' in html(client.get(NEW_SWAP))
    birch = CatalogModel.objects.get(name="birch")
    Server.objects.update(report={"weights": [birch.weights]})
    assert said not in html(client.get(NEW_SWAP))


def test_the_preview_names_the_gap_and_what_does_not_fit(admin: User, settings: Settings) -> None:
    settings.POOL_QUEUE_SECONDS, settings.RETIRED_NAME_DAYS = 45, 9
    rows.small_fleet(1)
    rows.catalogue_model("giant", weights_mib=400_000, context_length=16_384, load_seconds=840)
    page = html(signed_in(admin).get("/staff/swaps/new/?slot=nan&model=giant"))
    assert "A gap: there is one replica" in page
    assert "(at most 14 min)" in page
    assert "Requests wait up to 45 s, then get a 503" in page
    assert "retires 9 days later" in page
    assert "The context goes from 32,768 to 16,384 tokens." in page
    assert "does not fit" in page


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("slot=nan&model=alder", "serves this model already"),
        ("slot=nan&model=vectors", "of another kind"),
        ("slot=nan&model=hidden", "Select a valid choice"),
        ("slot=nothing&model=birch", "Select a valid choice"),
        ("slot=nan", "required"),
    ],
)
def test_choices_that_make_no_swap(query: str, said: str, admin: User, fleet: Fleet) -> None:
    rows.catalogue_model("vectors", kind="embedding", capabilities=[])
    rows.catalogue_model("hidden", offered=False)
    answer = signed_in(admin).get(f"/staff/swaps/new/?{query}")
    assert (answer.status_code, said in html(answer)) == (422, True)


def test_only_what_the_slot_can_have_is_offered(admin: User, fleet: Fleet) -> None:
    rows.slot("vec", rows.catalogue_model("vectors", kind="embedding"), kind="embedding")
    rows.catalogue_model("other-vectors", kind="embedding")
    client = signed_in(admin)

    def offered(query: str = "") -> list[str]:
        form = client.get(f"/staff/swaps/new/{query}").context["form"]
        return [name for name, _label in form.fields["model"].widget.choices]

    assert offered() == ["birch"]
    assert offered("?slot=vec&model=birch") == ["other-vectors"]
    answer = client.get("/staff/swaps/new/?slot=vec&model=birch&choosing=1")
    assert (answer.status_code, "errorlist" in html(answer)) == (200, False)
    assert ('<option value="vec" selected>' in html(answer), 'value="birch"' in html(answer)) == (
        True,
        False,
    )
    CatalogModel.objects.filter(name="other-vectors").update(offered=False)
    answer = client.get("/staff/swaps/new/?slot=vec&choosing=1")
    assert "The catalogue has no other model of this kind." in html(answer)
    assert client.get("/staff/swaps/new/?slot=nothing&choosing=1").status_code == 200
    Slot.objects.update(model=None)
    assert client.get("/staff/swaps/new/").status_code == 200


def test_a_wrong_answer_keeps_the_others(admin: User, fleet: Fleet) -> None:
    late = {**CHOICE, "start_at": "2001-01-01T10:00"}
    answer = signed_in(admin).post(NEW_SWAP, late)
    assert (answer.status_code, Swap.objects.count()) == (422, 0)
    assert "That time is over." in html(answer)
    assert answer.context["form"]["reason"].value() == "Vote"


def test_a_start_is_in_the_time_of_the_site(admin: User, fleet: Fleet) -> None:
    day = (timezone.localtime() + timedelta(days=2)).strftime("%Y-%m-%d")
    signed_in(admin).post(NEW_SWAP, {**CHOICE, "start_at": f"{day}T07:30"})
    start_at = Swap.objects.get().start_at
    assert start_at is not None
    assert timezone.localtime(start_at).strftime("%Y-%m-%d %H:%M") == f"{day} 07:30"


@pytest.mark.parametrize(
    ("typed", "language", "said"),
    [
        (
            "2027-03-28T02:30",
            "en",
            "On 28 Mar 2027 the clocks go forward, and there is no 02:30. "
            "Choose a time an hour earlier or later.",
        ),
        (
            "2027-10-31T02:30",
            "es",
            "El 31/10/2027 se retrasan los relojes y las 02:30 llegan dos veces. "
            "Elige una hora antes o después.",
        ),
        ("soon", "en", "This is not a date with a time."),
    ],
)
def test_a_start_that_is_no_single_moment(
    typed: str, language: str, said: str, admin: User, fleet: Fleet
) -> None:
    client = signed_in(admin)
    reader = {"Accept-Language": language}
    User.objects.update(language=language)
    answer = client.post(NEW_SWAP, {**CHOICE, "start_at": typed}, headers=reader)
    assert (answer.status_code, answer.context["form"].errors) == (422, {"start_at": [said]})
    assert (said in html(answer), Swap.objects.count()) == (True, 0)


def test_a_nul_that_was_pasted_costs_nothing_that_was_typed(admin: User, fleet: Fleet) -> None:
    client, pasted = signed_in(admin), "As voted\0 in November"
    answer = client.post(NEW_SWAP, {**CHOICE, "reason": pasted, "drain_minutes": "61"})
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, ["drain_minutes"])
    assert 'value="As voted in November"' in html(answer)
    assert client.post(NEW_SWAP, {**CHOICE, "reason": pasted}).status_code == 302
    assert Swap.objects.get().reason == "As voted in November"


def test_a_start_is_within_a_year(admin: User, fleet: Fleet) -> None:
    client = signed_in(admin)
    too_late = timezone.localtime() + timedelta(days=367)
    for start_at in ("9999-12-31T23:59", f"{too_late:%Y-%m-%dT%H:%M}"):
        answer = client.post(NEW_SWAP, {**CHOICE, "start_at": start_at})
        refused = "A swap starts within a year from now. Choose an earlier time."
        assert (answer.status_code, answer.context["form"].errors) == (
            422,
            {"start_at": [refused]},
        )
        assert f'value="{start_at}"' in html(answer)
    in_time = timezone.localtime() + timedelta(days=365)
    answer = client.post(NEW_SWAP, {**CHOICE, "start_at": f"{in_time:%Y-%m-%dT%H:%M}"})
    assert (answer.status_code, Swap.objects.count()) == (302, 1)


def test_two_clicks_plan_one_swap(admin: User, other_admin: User, fleet: Fleet) -> None:
    client = signed_in(admin)
    first, second = client.post(NEW_SWAP, CHOICE), client.post(NEW_SWAP, CHOICE)
    assert first["Location"] == second["Location"]
    assert Swap.objects.count() == 1
    other = signed_in(other_admin).post(NEW_SWAP, CHOICE)
    assert (other.status_code, Swap.objects.count()) == (422, 1)
    assert "Another swap of this slot is open." in html(other)


# -- What can't be done, and what has changed -------------------------------------------------
def test_a_slot_without_replicas_is_told_so_and_offers_nothing(admin: User, fleet: Fleet) -> None:
    slot, replicas, _new = fleet
    client = signed_in(admin)
    for one in replicas:
        one.goal = "off"
        one.save()

    def preview() -> str:
        page = html(client.get(NEW_SWAP))
        found = [text in page for text in ("No gap", "A gap", "Propose it", "Gained:")]
        assert found == [False] * 4
        assert "No replica of this slot is in service, so there is nothing" in page
        return page

    assert "Put one of its replicas in service first" in preview()
    answer = client.post(NEW_SWAP, CHOICE)
    assert (answer.status_code, Swap.objects.count()) == (422, 0)
    assert "No replica of this slot is in service." in html(answer)
    slot.replicas.all().delete()
    assert "Add a replica to it on a server's page" in preview()


def test_what_would_be_refused_is_not_offered(
    admin: User, other_admin: User, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot, _replicas, new = fleet
    client = signed_in(admin)
    assert "Propose it" in html(client.get(NEW_SWAP))
    CatalogModel.objects.filter(pk=new.pk).update(gpus_needed=2)
    page = html(client.get(NEW_SWAP))
    assert ("another number of GPUs" in page, "Propose it" in page) == (True, False)
    assert "Birch 27B needs another number of GPUs than this replica has: 2, and not 1." in page
    CatalogModel.objects.filter(pk=new.pk).update(gpus_needed=1)
    monkeypatch.setattr(plan, "HELD_BY", [lambda _slot: "vote_open"])
    page = html(client.get(NEW_SWAP))
    assert ("Members are voting" in page, "Propose it" in page) == (True, False)
    monkeypatch.undo()
    rows.swap(slot, new, other_admin)
    page = html(client.get(NEW_SWAP))
    assert ("Another swap of this slot is open" in page, "Propose it" in page) == (True, False)


def test_by_what_is_known_the_checks_would_end_it(admin: User) -> None:
    rows.small_fleet(1)
    rows.catalogue_model("giant", weights_mib=400_000)
    page = html(signed_in(admin).get("/staff/swaps/new/?slot=nan&model=giant"))
    assert "the checks before the start would end this swap" in page
    assert "Propose it" in page  # an estimate may be wrong


def test_silent_servers_and_replicas_that_do_not_serve_are_named(admin: User, fleet: Fleet) -> None:
    since = timezone.localtime() - timedelta(hours=2)
    Server.objects.update(reported_at=since)
    fleet[1][1].state = "failed"
    fleet[1][1].save()
    page = html(signed_in(admin).get(NEW_SWAP))
    said = formats.date_format(since, "SHORT_DATETIME_FORMAT")
    assert f"gpu-1 has not reported since {said}. The swap would wait for it." in page
    assert "gpu-1:8102 does not serve now (down)." in page


def test_what_changed_while_it_was_read_is_read_again(admin: User, fleet: Fleet) -> None:
    slot, _replicas, _new = fleet
    client = signed_in(admin)

    def seen(page: str) -> str:
        return page.split('name="seen" value="')[1].split('"')[0]

    old = seen(html(client.get(NEW_SWAP)))
    Slot.objects.filter(pk=slot.pk).update(model=rows.catalogue_model("cedar", capabilities=[]))
    answer = client.post(NEW_SWAP, {**CHOICE, "seen": old})
    page = html(answer)
    assert (answer.status_code, Swap.objects.count()) == (422, 0)
    assert "This has changed while you were reading it." in page
    assert "Gained: reasoning, tools" in page
    assert client.post(NEW_SWAP, {**CHOICE, "seen": seen(page)}).status_code == 302
