"""What everybody sees of the service: true, quick, private, and there when nothing else is."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from xml.etree import ElementTree

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format
from pytest_django import DjangoAssertNumQueries, Settings

from inference.heartbeats import UNBROKEN
from inference.models import (
    FleetEvent,
    Heartbeat,
    Incident,
    IncidentUpdate,
    Replica,
    ReplicaSample,
    Server,
    Slot,
    SlotSample,
    Swap,
)
from inference.status import incidents
from inference.status.facts import gather
from inference.status.thinning import thin
from members.models import User
from tests.inference.staff import rows
from tests.inference.status.conftest import api_stood, stood
from tests.pages.markup import words
from tests.people import signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("kept")]
ATOM = {"a": "http://www.w3.org/2005/Atom"}


def only(facts: dict[str, Any]) -> dict[str, Any]:
    (slot,) = facts["slots"]
    return slot


# -- What runs ---------------------------------------------------------------------------------
def test_what_runs_now(read: Callable[..., Any], slot: Slot) -> None:
    model = slot.model
    assert model
    model.flags = {"chat-template": "ours.jinja", "tool-call-parser": "x"}
    model.save()
    stood(slot, "uu")
    (one,) = only(read())["serving"]
    assert one == {
        "model": "alder",
        "title": "Alder 35B A3B",
        "repo": "acme/alder",
        "revision": rows.COMMIT,
        "context_length": 32768,
        "max_output": 8192,
        "flags": {"max-model-len": 32768, "tool-call-parser": "x"},
        "engine": "vllm",
        "engine_version": "0.33.0",
        "since_at": one["since_at"],
        "replicas": 1,
        "engines": [{"started_at": one["engines"][0]["started_at"]}],
    }
    assert slot.model_since
    assert datetime.fromisoformat(one["since_at"]) == slot.model_since.replace(
        microsecond=slot.model_since.microsecond // 1000 * 1000
    )
    said = words(read("/status/"))
    assert f"acme/alder@{rows.COMMIT}" in said
    assert "vllm 0.33.0" in said
    assert "1 of 1" in said


def test_since_when_the_model_serves_and_since_when_its_engines_run(
    read: Callable[..., Any], slot: Slot
) -> None:
    """A model that came long ago may be run by an engine that was started anew just now."""
    came = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
    first, again = (datetime(2026, 11, day, 10, 30, tzinfo=UTC) for day in (2, 20))
    other = datetime(2026, 11, 21, 7, 15, tzinfo=UTC)
    Slot.objects.update(model_since=came)
    mine = slot.replicas.get()
    second = rows.replica(slot, mine.server)
    for replica, at in ((mine, first), (mine, again), (second, other)):
        FleetEvent.objects.create(replica=replica, what="starting", at=at)
    stood(slot, "uu")
    (one,) = only(read())["serving"]
    assert datetime.fromisoformat(one["since_at"]) == came
    assert [datetime.fromisoformat(engine["started_at"]) for engine in one["engines"]] == [
        again,
        other,
    ]
    said = words(read("/status/"))
    assert "This model since 2 November 2026, 10:00 (Madrid)" in said
    assert (
        "Engine started 20 November 2026, 11:30 (Madrid) 21 November 2026, 08:15 (Madrid)" in said
    )


def test_engines_that_were_started_in_the_same_minute_have_one_line(
    read: Callable[..., Any], slot: Slot
) -> None:
    at = datetime(2026, 11, 21, 7, 15, tzinfo=UTC)
    mine = slot.replicas.get()
    for replica, second in ((mine, 4), (rows.replica(slot, mine.server), 40)):
        FleetEvent.objects.create(
            replica=replica, what="starting", at=at + timedelta(seconds=second)
        )
    stood(slot, "uu")
    (one,) = only(read())["serving"]
    assert len(one["engines"]) == 2
    assert "Engine started 21 November 2026, 08:15 (Madrid) Context" in words(read("/status/"))


@pytest.mark.parametrize(
    ("states", "rotating", "state", "said"),
    [
        ("uu", False, "up", "No model is down."),
        ("ud", False, "down", "No engine is in service."),
        ("ur", True, "rotation", "Another model is being loaded"),
        ("uu", True, "up", "A rotation is under way"),
        ("", False, "unknown", "There is no measurement of it now."),
    ],
)
def test_states(
    read: Callable[..., Any], slot: Slot, states: str, rotating: bool, state: str, said: str
) -> None:
    slot.rotating_since = timezone.now() if rotating else None
    slot.save()
    stood(slot, states)
    assert only(read())["state"] == state
    assert said in words(read("/status/"))


@pytest.mark.parametrize(
    ("states", "state", "said"),
    [
        ("ug", "gateway", "Requests are not answered: the gateway is down."),
        ("ue", "edge", "Requests are not answered: the API can't be reached."),
        ("uk", "keys", "Requests are not answered: keys can't be checked."),
    ],
)
def test_an_api_that_does_not_answer_is_said_first(
    read: Callable[..., Any], slot: Slot, states: str, state: str, said: str
) -> None:
    """Though every model runs: and never as anybody's limit."""
    stood(slot, "uu")
    api_stood(states)
    assert read()["api"]["state"] == state
    whole = words(read("/status/"))
    assert said in unescape(whole).split("API http")[0]
    assert "No model is down." not in whole
    assert "The model runs, but requests do not reach it now: see API." in whole
    assert "limits have nothing to do with it" in whole or state == "keys"
    assert whole.count("Your own limit") == 1  # only what 429 means


def test_an_api_that_answers(read: Callable[..., Any], slot: Slot) -> None:
    stood(slot, "uu")
    api_stood("gguu")
    facts = read()["api"]
    assert (facts["state"], facts["uptime"]) == ("up", 0.5)
    said = words(read("/status/"))
    assert "No model is down." in said
    assert "not answered" not in said


def test_an_incident_of_the_api(read: Callable[..., Any], slot: Slot) -> None:
    stood(slot, "u")
    at = api_stood("ggg")
    incidents.judge(at)
    told = read()["incidents"][0]
    assert (told["what"], told["slot"], told["ended_at"]) == ("api", None, None)
    assert read()["api"]["incident"]["id"] == told["id"]
    assert only(read())["incident"] is None
    assert "API: requests not answered" in words(read("/status/"))
    tree = ElementTree.fromstring(read("/status.atom"))
    title = tree.findtext("a:entry/a:title", namespaces=ATOM)
    assert title == "API: requests are not answered"


def test_a_start_of_everything_is_a_start(read: Callable[..., Any], slot: Slot) -> None:
    Replica.objects.update(state="starting", state_since=timezone.now())
    assert only(read())["state"] == "starting"
    assert "Its engines have just been started" in words(read("/status/"))
    assert "No model is down." not in words(read("/status/"))
    Replica.objects.update(attempts=1)  # because it had failed
    stood(slot, "d")
    assert only(read())["state"] == "down"


def test_what_was_seen_before_a_stop_of_everything_says_nothing_about_now(
    read: Callable[..., Any], slot: Slot
) -> None:
    stood(slot, "uu")
    api_stood("uu")
    Replica.objects.update(state="starting", state_since=timezone.now())
    Heartbeat.objects.create(name=UNBROKEN, at=timezone.now())
    assert (only(read())["state"], read()["api"]["state"]) == ("starting", "unknown")


def test_a_start_that_takes_longer_than_its_model_may(read: Callable[..., Any], slot: Slot) -> None:
    long_ago = timezone.now() - timedelta(hours=1)
    Replica.objects.update(state="starting", state_since=long_ago)
    stood(slot, "d")
    assert only(read())["state"] == "down"


def test_when_nothing_is_measured_no_model_is_called_up(
    read: Callable[..., Any], slot: Slot
) -> None:
    said = words(read("/status/"))
    assert "Nothing is measured: models may well answer." in said
    assert "No model is down." not in said
    last = stood(slot, "u", until=timezone.now() - timedelta(minutes=9))
    since = date_format(timezone.localtime(last), "DATETIME_FORMAT")
    said = words(read("/status/"))
    assert f"Nothing has been measured since {since} (Madrid)" in said
    assert "There is no measurement of it now." in said


def test_its_menu_is_true_for_who_is_signed_in_and_for_who_is_not(
    read: Callable[..., Any], client: Client, member: User
) -> None:
    """It can't know. So nobody is told to sign in; who is not is asked to by the pages it names."""
    page = read("/status/")
    assert "/accounts/" not in page
    assert "Sign in" not in page
    of_member = signed_in(member)
    for path in ("/", "/key/", "/usage/", "/vote/", "/docs/", "/account/"):
        assert f'href="{path}"' in page
        assert of_member.get(path, follow=True).status_code == 200
    for path in ("/key/", "/account/"):
        assert client.get(path)["Location"] == f"/accounts/login/?next={path}"


def test_so_is_the_menu_of_a_page_that_is_not_there(member: User) -> None:
    answer = signed_in(member).get("/status/nothing/", headers={"accept-language": "en"})
    assert answer.status_code == 404
    assert "/accounts/" not in answer.content.decode()
    assert 'href="/account/"' in answer.content.decode()


def test_fewer_engines_than_wanted(read: Callable[..., Any], slot: Slot) -> None:
    rows.replica(slot, Server.objects.get(), state="failed")
    stood(slot, "u")
    assert (only(read())["state"], only(read())["replicas_wanted"]) == ("degraded", 2)


def test_a_look_from_before_a_swap_was_over_does_not_say_that_engines_are_missing(
    read: Callable[..., Any], slot: Slot, admin: User
) -> None:
    """Of the half minute until the next look."""
    rows.replica(slot, Server.objects.get())
    seen = stood(slot, "u")
    assert only(read())["state"] == "degraded"
    ended = {"started_at": seen - timedelta(minutes=9), "finished_at": seen + timedelta(seconds=3)}
    rows.swap(slot, rows.catalogue_model("cedar"), admin, state="done", **ended)
    assert only(read())["state"] == "up"
    Swap.objects.update(finished_at=seen - timedelta(seconds=3))
    assert only(read())["state"] == "degraded"


def test_a_slot_that_admins_took_out_is_neither_down_nor_fine(
    read: Callable[..., Any], slot: Slot, admin: User
) -> None:
    at = timezone.now().replace(microsecond=0) - timedelta(hours=3)
    FleetEvent.objects.create(replica=slot.replicas.get(), what="taken_out", at=at, actor=admin)
    stood(slot, "u")
    assert only(read())["out"] is None
    Replica.objects.update(goal="off", state="off", model=None)
    told = only(read())
    assert (told["state"], told["out"]["title"]) == ("out", "Alder 35B A3B")
    assert (told["replicas_up"], told["replicas_wanted"]) == (None, 0)
    assert datetime.fromisoformat(told["out"]["since_at"]) == at
    english, spanish = words(read("/status/")), words(read("/status/?language=es"))
    assert "No model is down." not in english
    first = english.split("API http")[0]
    assert "Nan: the admins have taken Alder 35B A3B out of service. This is planned" in first
    assert "Requests get 503 model_taken_out at once" in english
    assert "los admins han retirado Alder 35B A3B del servicio. Es algo planeado" in spanish
    tree = ElementTree.fromstring(read("/status.atom"))
    title = tree.findtext("a:entry/a:title", namespaces=ATOM)
    assert title == "nan: the admins have taken Alder 35B A3B out of service"
    assert "This is planned, and no fault." in read("/status.atom")


def test_a_slot_without_a_model_is_not_in_service_and_nobody_took_it_out(
    read: Callable[..., Any], slot: Slot
) -> None:
    rows.slot("speech")
    stood(slot, "u")
    speech = read()["slots"][1]
    assert (speech["state"], speech["out"]) == ("off", None)
    assert "No model is down." in words(read("/status/"))
    assert "out of service" not in words(read("/status/"))
    assert read("/status.atom").count("<entry>") == 0


def test_an_old_sample_says_nothing_about_now(read: Callable[..., Any], slot: Slot) -> None:
    stood(slot, "u", until=timezone.now() - timedelta(minutes=3))
    assert only(read())["state"] == "unknown"


def test_a_limit_is_never_called_an_outage(read: Callable[..., Any], slot: Slot) -> None:
    """S16: the page says which error is whose."""
    stood(slot, "d")
    said = words(read("/status/"))
    assert "429 Your own limit" in said
    assert "503 Model down, a rotation under way, the gateway down" in said
    assert "model down" in said.split("What your error means")[0]
    assert "limit has" not in said


def test_before_anything_runs(read: Callable[..., Any]) -> None:
    assert "Nothing is in service yet." in words(read("/status/"))


# -- Figures -----------------------------------------------------------------------------------
def sampled(slot: Slot, at: datetime, **fields: Any) -> ReplicaSample:
    return ReplicaSample.objects.create(
        slot=slot, replica=Replica.objects.filter(slot=slot).first(), at=at,
        **{"seconds": 30, "generated": 300, "running": 2, **fields},
    )  # fmt: skip


def test_speed_now_and_over_a_day(read: Callable[..., Any], slot: Slot) -> None:
    now = timezone.now()
    hour = now.replace(minute=0, second=0, microsecond=0)
    waits: dict[str, Any] = {"first_tokens": 20, "first_token_seconds": 10.0}
    for back in (10, 40):
        sampled(slot, now - timedelta(seconds=back), first_token_buckets={"0.5": 20}, **waits)
    before: dict[str, Any] = {"first_token_buckets": {"1.0": 18, "5.0": 2}, **waits}
    sampled(slot, hour - timedelta(hours=1), span="hour", seconds=3600, generated=72_000, **before)
    sampled(slot, hour - timedelta(hours=2), generated=10**9)  # stands in an hour already
    sampled(slot, hour - timedelta(hours=30), span="hour", generated=10**9)
    seen = only(read())
    assert seen["now"] == {
        "first_token_seconds": 0.5, "first_token_p95_seconds": 0.5, "tokens_per_second": 10.0,
        "running": 2.0, "waiting": 0.0, "kv_usage": 0.0, "acceptance": None,
    }  # fmt: skip
    assert seen["day"]["tokens_per_second"] == round(72_600 / 3660, 3)
    assert seen["day"]["first_token_p95_seconds"] == 1.0


def test_an_hour_that_was_just_made_is_not_counted_twice(slot: Slot) -> None:
    now = datetime(2026, 11, 29, 12, 3, tzinfo=UTC)
    hour = {"span": "hour", "seconds": 3600, "generated": 36_000}
    sampled(slot, now.replace(hour=11, minute=0), **hour)
    sampled(
        slot, now.replace(hour=11, minute=59), generated=300, running=20
    )  # stands in the hour, and is recent as well
    seen = gather(now)["slots"][0]
    assert seen["now"]["tokens_per_second"] == 10.0
    assert seen["day"]["tokens_per_second"] == 10.0
    assert seen["day"]["running"] == 2.0


def test_nobody_asked_is_no_speed(read: Callable[..., Any], slot: Slot) -> None:
    sampled(slot, timezone.now(), generated=0, running=0)
    assert only(read())["now"]["first_token_seconds"] is None
    stood(slot, "u")
    assert "mean – –" in words(read("/status/"))


def test_thirty_days(read: Callable[..., Any], slot: Slot) -> None:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for days, down, rotation in ((1, 0, 0), (2, 36, 0), (3, 360, 360), (29, 0, 0), (30, 3600, 0)):
        SlotSample.objects.create(
            slot=slot, span="hour", at=today - timedelta(days=days), seconds=3600, up=1, wanted=1,
            down_seconds=down, rotation_seconds=rotation,
        )  # fmt: skip
    seen = only(read())
    assert len(seen["days"]) == 30
    assert seen["days"][-2]["day"] == str((today - timedelta(days=1)).date())
    assert [day["down_seconds"] for day in seen["days"] if day["seen_seconds"]] == [0, 0, 36, 0]
    assert seen["days"][-4]["rotation_seconds"] == 360
    assert seen["uptime"] == round(1 - 36 / 14400, 6)
    html = read("/status/")
    assert html.count("<rect") == 30 + 2  # two days have two parts
    assert "99.75 %" in words(html)
    assert "up 99.00 %, down 1 min" in words(html)
    assert "up 100.00 %, rotation 6 min" in words(html)


def test_days_on_which_admins_had_taken_it_out(read: Callable[..., Any], slot: Slot) -> None:
    """Not measured, and none of its uptime, but said for what it was: a whole day, and a part."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for days, down, out in ((1, 0, 3600), (2, 900, 1800), (3, 0, 0)):
        SlotSample.objects.create(
            slot=slot, span="hour", at=today - timedelta(days=days), seconds=3600, up=1, wanted=1,
            down_seconds=down, out_seconds=out,
        )  # fmt: skip
    seen = only(read())
    told = [(day["seen_seconds"], day["down_seconds"], day["out_seconds"]) for day in seen["days"]]
    assert told[-4:-1] == [(3600, 0, 0), (1800, 900, 1800), (0, 0, 3600)]
    assert seen["uptime"] == round(1 - 900 / 5400, 6)
    html = read("/status/")
    said, spanish = words(html), words(read("/status/?language=es"))
    yesterday = date_format((today - timedelta(days=1)).date(), "SHORT_DATE_FORMAT")
    assert f"<title>{yesterday}: taken out of service</title>" in html
    assert f"{yesterday} taken out of service" in said
    assert "up 50.00 %, down 15 min, taken out of service 30 min" in said
    assert "en marcha 50,00 %, caído 15 min, retirado del servicio 30 min" in spanish
    assert html.count('<rect class="out"') == 2


def test_a_time_out_of_service_that_is_over_stays_in_the_history(
    read: Callable[..., Any], slot: Slot, admin: User
) -> None:
    """By the page, the file and the feed, to the second of what the admin did."""
    put_in = timezone.now().replace(microsecond=0) - timedelta(minutes=20)
    taken_out = put_in - timedelta(minutes=50, seconds=12)
    stood(slot, "u" * 8 + "o" * 100, until=put_in - timedelta(seconds=11))
    stood(slot, "u" * 30, until=put_in + timedelta(minutes=17))
    thin()
    for what, at in (("taken_out", taken_out), ("put_in", put_in)):
        FleetEvent.objects.create(replica=slot.replicas.get(), what=what, at=at, actor=admin)
    (told,) = read()["taken_out"]
    assert told["slot"] == "nan"
    assert [datetime.fromisoformat(told[end]) for end in ("began_at", "ended_at")] == [
        taken_out,
        put_in,
    ]
    assert only(read())["out"] is None
    assert "the admins had taken nan out of service (50 min). This was planned" in words(
        read("/status/")
    )
    tree = ElementTree.fromstring(read("/status.atom"))
    title, name = (tree.findtext(f"a:entry/a:{tag}", namespaces=ATOM) for tag in ("title", "id"))
    assert title == "nan: the admins had taken it out of service"
    Replica.objects.update(goal="off", state="off", model=None)  # as the feed told it then
    FleetEvent.objects.filter(what="put_in").delete()
    SlotSample.objects.filter(out_seconds__gt=0).delete()
    tree = ElementTree.fromstring(read("/status.atom"))
    assert tree.findtext("a:entry/a:id", namespaces=ATOM) == name


def test_a_time_out_of_service_goes_on_though_nobody_looked(
    read: Callable[..., Any], slot: Slot, admin: User
) -> None:
    now = timezone.now().replace(microsecond=0)
    at = now - timedelta(minutes=90)
    FleetEvent.objects.create(replica=slot.replicas.get(), what="taken_out", at=at, actor=admin)
    stood(slot, "o" * 40, until=now - timedelta(minutes=70))
    stood(slot, "o" * 4, until=now)
    Replica.objects.update(goal="off", state="off", model=None)
    assert read()["taken_out"] == []
    assert datetime.fromisoformat(only(read())["out"]["since_at"]) == at


# -- Incidents and rotations -------------------------------------------------------------------
def test_an_incident_in_the_readers_language(
    read: Callable[..., Any], client: Client, incident: Incident
) -> None:
    english, spanish = read("/status/"), read("/status/?language=es")
    assert "A power &lt;supply&gt; died." in english
    assert "Una &lt;fuente&gt; murió." in spanish
    assert '<html lang="es">' in spanish
    assert only(read())["incident"]["id"] == incident.pk
    incident.ended_at = timezone.now()
    incident.save()
    assert only(read())["incident"] is None
    assert "(2 h 0 min)" in words(read("/status/"))


def test_old_incidents_go(read: Callable[..., Any], incident: Incident) -> None:
    incident.ended_at = timezone.now() - timedelta(days=31)
    incident.save()
    assert read()["incidents"] == []


def test_the_calendar_has_what_members_read_of_it(
    read: Callable[..., Any], slot: Slot, admin: User, settings: Settings
) -> None:
    """Their home page and that of votes tell of a plan before its second admin has confirmed it."""
    settings.SWAP_SECOND_ADMIN = True
    new = rows.catalogue_model("oak", "Oak 9B")
    start = timezone.now() + timedelta(days=2)
    row = rows.swap(slot, new, admin, state="planned")
    (one,) = read()["rotations"]
    assert (one["from"], one["to"], one["state"]) == ("Alder 35B A3B", "Oak 9B", "planned")
    assert "As soon as it is confirmed. waits for a second admin" in words(read("/status/"))
    assert "Oak 9B" not in read("/status.atom")  # news are what is certain
    row.state, row.start_at = "approved", start
    row.save()
    assert read()["rotations"][0]["state"] == "approved"
    said = words(read("/status/"))
    assert "Oak 9B" in said
    assert "waits for a second admin" not in said
    assert "Oak 9B" in read("/status.atom")


def test_the_feed(read: Callable[..., Any], incident: Incident, slot: Slot, admin: User) -> None:
    rows.swap(slot, rows.catalogue_model("oak", "Oak 9B"), admin, state="done")
    tree = ElementTree.fromstring(read("/status.atom"))
    titles = [entry.findtext("a:title", namespaces=ATOM) for entry in tree.findall("a:entry", ATOM)]
    assert sorted(str(title) for title in titles) == [
        "nan: Oak 9B has taken the place of Alder 35B A3B",
        "nan: the model is down",
    ]
    texts = [
        entry.findtext("a:summary", namespaces=ATOM) for entry in tree.findall("a:entry", ATOM)
    ]
    assert all(texts)
    assert any("<p>A power &lt;supply&gt; died.</p>" in str(text) for text in texts)  # it is HTML
    ids = {entry.findtext("a:id", namespaces=ATOM) for entry in tree.findall("a:entry", ATOM)}
    incident.ended_at = timezone.now()
    incident.save()
    again = ElementTree.fromstring(read("/status.atom"))
    assert {e.findtext("a:id", namespaces=ATOM) for e in again.findall("a:entry", ATOM)} == ids


def test_an_incident_that_nobody_wrote_about_says_when_it_was(
    read: Callable[..., Any], slot: Slot
) -> None:
    began = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
    row = Incident.objects.create(slot=slot, began_at=began)

    def summary() -> str:
        tree = ElementTree.fromstring(read("/status.atom"))
        return str(tree.findtext("a:entry/a:summary", namespaces=ATOM))

    assert summary() == "<p>Since 2026-11-29 13:00 CET.</p>"
    row.ended_at = began + timedelta(minutes=5)
    row.save()
    assert summary() == "<p>From 2026-11-29 13:00 CET to 2026-11-29 13:05 CET.</p>"
    assert "29 November 2026, 13:00 – 29 November 2026, 13:05 , Madrid (5 min)" in words(
        read("/status/")
    )


# -- What nobody may see, and what it costs ----------------------------------------------------
def test_no_address_no_server_and_no_person(
    read: Callable[..., Any], slot: Slot, incident: Incident, admin: User
) -> None:
    Server.objects.update(name="hetzner-7", address="10.8.0.99")
    IncidentUpdate.objects.update(author=admin)
    rows.swap(slot, rows.catalogue_model("oak"), admin, state="approved", reason="Alma said so")
    stood(slot, "u")
    for path in ("/status/", "/status.json", "/status.atom"):
        said = read(path)
        for secret in ("hetzner", "10.8.", "8101", "Alma", "example.org", "r1-g1"):
            assert secret not in said, (path, secret)


def test_no_session_is_looked_up_and_none_is_set(
    member: User, slot: Slot, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client = signed_in(member)
    client.get("/status/")
    for path in ("/status/", "/status.json", "/status.atom"):
        with django_assert_num_queries(0):
            answer = client.get(path)
        assert answer.status_code == 200
        assert answer.cookies == {}
        assert "Mara" not in answer.content.decode()
    assert client.get("/key/").status_code == 200  # she is still signed in


@pytest.mark.parametrize("slots", [1, 3])
def test_queries_do_not_grow(slots: int, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    model = rows.catalogue_model("alder")
    for number in range(slots):
        one = rows.slot(f"slot-{number}", model)
        on = rows.server(f"gpu-{number}")
        for _ in range(number + 1):
            rows.replica(one, on)
        stood(one, "ud")
        found = Incident.objects.create(slot=one, began_at=timezone.now())
        IncidentUpdate.objects.create(incident=found, text_es="a", text_en="b")
    api_stood("ug")
    with django_assert_num_queries(18):
        gather(timezone.now())


def test_many_ask_and_the_rows_are_read_once(
    client: Client, slot: Slot, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client.get("/status/")
    with django_assert_num_queries(0):
        for _ in range(5):
            assert client.get("/status/").status_code == 200


def test_only_reading(client: Client) -> None:
    assert client.post("/status/").status_code == 405
