"""What pages of /docs/ say of calls and of clients: what answered, what was run, what is down."""

from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone, translation
from django.utils.formats import date_format
from pytest_django import DjangoAssertNumQueries

from inference.docs import verified
from inference.docs.pages import load
from inference.models import ProbeResult, Slot
from inference.probes.calls import CALLS
from inference.status import glance, shelf
from inference.status.shelf import Shelf
from members.models import User
from tests.inference.staff import rows
from tests.inference.status.conftest import api_stood, stood
from tests.pages.markup import faults, text_of, words
from tests.people import signed_in

pytestmark = pytest.mark.django_db


def probe(slot: Slot, call: str, *, ok: bool = True, **fields: object) -> None:
    ProbeResult.objects.create(slot=slot, model=slot.model, call=call, ok=ok, **fields)


def test_the_badge_says_what_the_probes_found(client: Client, slot: Slot) -> None:
    path = "/docs/examples/opencode-1/"
    page = words(client.get(path, headers={"accept-language": "en"}).content.decode())
    assert "not all calls checked yet With Some &lt;b&gt;Model" in page
    assert "A tool call, streamed: not checked yet" in page
    long_ago = timezone.now() - timedelta(days=3)
    probe(slot, "stream", checked_at=long_ago)
    probe(slot, "tools_stream")
    with translation.override("en"):
        day = date_format(timezone.localtime(long_ago), "DATE_FORMAT")
    page = words(client.get(path, headers={"accept-language": "en"}).content.decode())
    assert "calls answered We made each of them with Some &lt;b&gt;Model" in page
    assert f"on {day}, without the client." in page
    ProbeResult.objects.filter(call="stream").update(ok=False, code="smoke_half_stream")
    page = words(client.get(path, headers={"accept-language": "en"}).content.decode())
    assert "a call fails" in page
    assert "Chat, streamed: fails , the answer breaks off" in page
    assert "A tool call, streamed: answered" in page
    assert "The admins know. Your configuration can stay as it is." in page


def test_what_the_model_does_not_claim_is_no_failure(client: Client, slot: Slot) -> None:
    page = words(client.get("/docs/images/", headers={"accept-language": "en"}).content.decode())
    assert "not with this model" in page
    assert "A picture: this model does not offer it" in page
    assert "The admins know" not in page


def all_calls_answer(slot: Slot) -> None:
    for call in CALLS:
        probe(slot, call.name)


def test_calls_that_answer_are_not_a_client_that_was_run(client: Client, slot: Slot) -> None:
    """Two facts, in words of their own: on the page and on the list."""
    all_calls_answer(slot)
    for name, page in load("en").items():
        if page.is_guide:
            continue
        shown = words(text_of(client, f"/docs/examples/{name}/"))
        runs = verified.of(name)
        assert "calls answered We made each of them" in shown
        assert shown.count("✓ Verified with ") == len(runs)
        assert all(f"✓ Verified with {run.package} {run.version}" in shown for run in runs)
        assert ("not verified by us" in shown) == (not runs)
        assert (str(page.why_unverified) in shown) or runs


def test_the_list_says_both_of_each_client(client: Client, slot: Slot) -> None:
    all_calls_answer(slot)
    page = words(text_of(client, "/docs/examples/?client=zed"))
    assert "Client: not verified by us API calls: calls answered" in page
    (run,) = verified.of("codex")
    page = words(text_of(client, "/docs/examples/?client=codex"))
    assert f"Client: ✓ verified {run.package} {run.version} API calls: calls answered" in page
    assert "not verified by us" not in page
    ProbeResult.objects.filter(call="responses_tools").update(ok=False)
    assert "a call fails" in words(text_of(client, "/docs/examples/?client=codex"))


def test_an_editor_was_run_in_the_terminal_only(client: Client) -> None:
    """What ran is its program without a screen, and not the panel that the page sets up first."""
    unseen = "That was its program for the terminal: inside an editor we have not tried it."
    for name in ("cline", "continue"):
        assert words(text_of(client, f"/docs/examples/{name}/")).count(unseen) == 1
        (run,) = verified.of(name)
        listed = words(text_of(client, f"/docs/examples/?client={name}"))
        assert f"✓ verified {run.package} {run.version} in the terminal" in listed
    for name in ("codex", "zed"):
        assert unseen not in words(text_of(client, f"/docs/examples/{name}/"))


def test_the_list_costs_the_same_however_many_pages(
    client: Client,
    slot: Slot,
    django_assert_num_queries: DjangoAssertNumQueries,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """How the service stands is looked up by the process every few seconds, not for each page."""
    fresh = Shelf(tmp_path / "status.json", aside=lambda run, seconds: run())
    monkeypatch.setattr(glance, "shelf", fresh)
    monkeypatch.setattr(shelf, "FRESH_SECONDS", 3600.0)
    fresh.look()
    all_calls_answer(slot)
    for address in ("/docs/examples/", "/docs/examples/?client=zed"):
        with django_assert_num_queries(2):
            client.get(address)


def test_members_see_the_table(member: User, slot: Slot) -> None:
    probe(slot, "chat")
    probe(slot, "tools", ok=False, code="smoke_tool_call_lost")
    response = signed_in(member).get("/docs/examples/works/")
    assert (response.status_code, faults(response, language="en")) == (200, [])
    page = response.content.decode()
    assert "tool calls get lost or come broken" in page


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the status page knows, looked up for each page."""
    fresh = Shelf(tmp_path / "status.json", aside=lambda run, seconds: run())
    monkeypatch.setattr(shelf, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(glance, "shelf", fresh)


@pytest.mark.usefixtures("now")
def test_a_model_that_does_not_answer_does_not_run_now(member: User, slot: Slot) -> None:
    """Whatever its calls did last night."""
    probe(slot, "chat")
    replica = rows.replica(slot, rows.server("box"))
    reader = signed_in(member)

    def look(path: str) -> str:
        return unescape(words(reader.get(path).content.decode()))

    table, example = "/docs/examples/works/", "/docs/examples/opencode/"
    assert "Model</b> runs now" in look(table)  # nothing was measured yet
    stood(slot, "u")
    assert "Model</b> runs now" in look(table)
    assert "out of service" not in look(example)
    stood(slot, "d", until=timezone.now() + timedelta(milliseconds=1))
    assert "Model</b> model down" in look(table)
    assert "Chat: model down. Status" in look(example)
    type(replica).objects.update(goal="off", state="off", model=None)
    assert "Model</b> taken out by the admins" in look(table)
    assert "the admins have taken Some <b>Model</b> out of service" in look(example)
    for other in ("/docs/examples/", "/docs/embeddings/"):
        assert "out of service" not in look(other)


@pytest.mark.usefixtures("now")
@pytest.mark.parametrize(
    "path",
    [
        "/docs/",
        "/docs/examples/",
        "/docs/examples/works/",
        "/docs/texts/",
        "/docs/examples/codex/",
        "/docs/errors/",
        "/key/",
        "/usage/",
    ],
)
def test_pages_about_calls_say_that_the_api_is_down(member: User, slot: Slot, path: str) -> None:
    """In the words of the status page, once; and for as long as it is down."""
    reader = signed_in(member)

    def look(language: str) -> str:
        headers = {"accept-language": language}
        return unescape(words(reader.get(path, headers=headers).content.decode()))

    stood(slot, "u")
    assert "not answered: " not in look("en")
    at = api_stood("ug", until=timezone.now() + timedelta(milliseconds=1))
    assert look("en").count("Requests are not answered: the gateway is down. Status") == 1
    reader.cookies["django_language"] = "es"
    assert "No se responde a las peticiones: la pasarela está caída. Estado" in look("es")
    api_stood("u", until=at + timedelta(milliseconds=1))
    reader.cookies["django_language"] = "en"
    assert "not answered: " not in look("en")
