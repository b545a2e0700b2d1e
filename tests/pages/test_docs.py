"""Pages of /docs/: read by anyone, in both languages, filled from rows and settings."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone, translation
from django.utils.formats import date_format

from inference.docs.pages import load
from inference.models import CatalogModel, Kind, ProbeResult, Slot
from members.models import User
from tests.pages.markup import faults, read
from tests.people import signed_in

pytestmark = pytest.mark.django_db
PAGES = [
    "/docs/",
    "/docs/examples/",
    *(
        f"/docs/{page.name}/" if page.is_guide else f"/docs/examples/{page.name}/"
        for page in load("es").values()
    ),
]


@pytest.fixture
def model() -> CatalogModel:
    return CatalogModel.objects.create(
        name="some-model",
        title="Some <b>Model</b>",
        repo="a/b",
        revision="0" * 40,
        licence="MIT",
        weights_mib=1,
        context_length=65_432,
        max_output=12_345,
        capabilities=["tools"],
    )


@pytest.fixture
def slot(model: CatalogModel) -> Slot:
    Slot.objects.create(name="nan-embed", title="E", number=2, kind=Kind.EMBEDDING)
    return Slot.objects.create(name="nan", title="Chat", number=1, model=model)


def text_of(client: Client, path: str, language: str = "en") -> str:
    return unescape(client.get(path, headers={"accept-language": language}).content.decode())


@pytest.mark.parametrize("language", ["es", "en"])
@pytest.mark.parametrize("path", PAGES)
def test_every_page_keeps_the_rules(client: Client, slot: Slot, path: str, language: str) -> None:
    response = client.get(path, headers={"accept-language": language})
    assert (response.status_code, faults(response, language=language)) == (200, [])
    assert "{{" not in response.content.decode()


def test_pages_are_filled_with_what_runs_now(
    client: Client, slot: Slot, model: CatalogModel
) -> None:
    page = text_of(client, "/docs/examples/opencode-1/")
    assert '"limit": {"context": 65432, "output": 12345}' in page
    assert f'"baseURL": "{settings.API_URL}/v1"' in page
    model.context_length = 9_000
    model.save()
    page = text_of(client, "/docs/examples/opencode-1/")
    assert '"limit": {"context": 9000, "output": 9000}' in page
    slot.name = "other"
    slot.save()
    assert '"model": "nan/other"' in text_of(client, "/docs/examples/opencode-1/")


def test_a_models_name_is_no_markup(client: Client, slot: Slot) -> None:
    raw = client.get("/docs/first-call/").content.decode()
    assert "Some &lt;b&gt;Model&lt;/b&gt;" in raw
    assert "<b>Model" not in raw


def test_without_a_model_pages_say_so(client: Client) -> None:
    page = text_of(client, "/docs/examples/codex/")
    assert "No model runs at the moment" in page
    assert "model_context_window = UNKNOWN" in page


def test_a_file_is_what_the_page_shows(client: Client, slot: Slot) -> None:
    page = text_of(client, "/docs/examples/claude-code/")
    answer = client.get("/docs/examples/claude-code/files/settings.json")
    assert answer["Content-Disposition"] == 'attachment; filename="settings.json"'
    shown = re.sub(r"<span data-key>(\w+)</span>", r"\1", page)
    assert answer.content.decode().strip() in shown
    assert '"ANTHROPIC_AUTH_TOKEN": "YOUR_KEY"' in answer.content.decode()


@pytest.mark.parametrize(
    "file", ["../opencode/opencode.json", "..%2fopencode%2fopencode.json", "other.json", ".env"]
)
def test_no_other_file_is_given(client: Client, file: str) -> None:
    assert client.get(f"/docs/examples/codex/files/{file}").status_code == 404


def test_unknown_pages_and_pages_of_the_other_kind(client: Client) -> None:
    for path in (
        "/docs/nothing/",
        "/docs/examples/nothing/",
        "/docs/codex/",
        "/docs/examples/errors/",
    ):
        assert client.get(path).status_code == 404


def test_the_key_field_has_no_name_and_is_in_no_form(client: Client, slot: Slot) -> None:
    response = client.get("/docs/examples/claude-code/", headers={"accept-language": "en"})
    (field,) = [one for one in read(response).inputs if one.get("id") == "own-key"]
    assert "name" not in field
    assert field["autocomplete"] == "off"
    html = response.content.decode()
    before = html[: html.index('id="own-key"')]
    assert before.count("<form") == before.count("</form>")


def test_the_search_works_without_javascript(client: Client) -> None:
    page = text_of(client, "/docs/examples/?q=SIMON&api=chat")
    assert ("/docs/examples/llm/" in page, "/docs/examples/codex/" in page) == (True, False)
    page = text_of(client, "/docs/examples/?api=responses&kind=terminal")
    assert ("/docs/examples/codex/" in page, "/docs/examples/llm/" in page) == (True, False)
    assert "No example fits" in text_of(client, "/docs/examples/?q=%3Cscript%3Ezz")
    assert "<script>zz" not in client.get("/docs/examples/?q=<script>zz").content.decode()


def probe(slot: Slot, call: str, *, ok: bool = True, **fields: object) -> None:
    ProbeResult.objects.create(slot=slot, model=slot.model, call=call, ok=ok, **fields)


def test_the_badge_says_what_the_probes_found(client: Client, slot: Slot) -> None:
    path = "/docs/examples/claude-code/"
    assert "Not checked yet with Some <b>Model</b>" in text_of(client, path)
    long_ago = timezone.now() - timedelta(days=3)
    probe(slot, "messages", checked_at=long_ago)
    probe(slot, "count_tokens")
    with translation.override("en"):
        day = date_format(timezone.localtime(long_ago), "DATE_FORMAT")
    page = " ".join(text_of(client, path).split())
    assert f"Works with Some <b>Model</b>, checked on {day}." in page
    ProbeResult.objects.filter(call="messages").update(ok=False, code="smoke_events")
    page = text_of(client, path)
    assert "the events of a stream come in a wrong order" in page
    assert "The admins know" in page


def test_what_the_model_does_not_claim_is_no_failure(client: Client, slot: Slot) -> None:
    assert "does not offer a call that this page needs" in text_of(client, "/docs/images/")


def test_members_see_the_table(member: User, slot: Slot) -> None:
    probe(slot, "chat")
    probe(slot, "tools", ok=False, code="smoke_tool_call_lost")
    response = signed_in(member).get("/docs/examples/works/")
    assert (response.status_code, faults(response, language="en")) == (200, [])
    page = response.content.decode()
    assert "tool calls get lost or come broken" in page


def test_limits_on_the_page_of_errors_are_the_settings(client: Client, settings: object) -> None:
    settings.MEMBER_RPM, settings.MEMBER_PARALLEL = 77, 3
    page = text_of(client, "/docs/errors/")
    assert "more than 77 requests in a minute" in page
    assert "more than 3 at once" in page
    for code in ("model_retired", "model_rotating", "requests_per_minute", "max_parallel_requests"):
        assert code in page
