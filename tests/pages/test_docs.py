"""Pages of /docs/: read by anyone, in both languages, filled from rows and settings."""

import re
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone, translation
from django.utils.formats import date_format
from pytest_django import DjangoAssertNumQueries

from inference.docs import verified
from inference.docs.pages import load
from inference.models import CatalogModel, Kind, ProbeResult, Slot
from inference.probes.calls import CALLS
from inference.status import glance, shelf
from inference.status.shelf import Shelf
from members.models import User
from tests.inference.staff import rows
from tests.inference.status.conftest import api_stood, stood
from tests.pages.markup import faults, read, words
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


def test_the_first_call_has_both_names_both_addresses_and_the_limits(
    client: Client, slot: Slot
) -> None:
    page = words(text_of(client, "/docs/first-call/"))
    assert f"for nearly everything {settings.API_URL}/v1 " in page
    assert f"clients of Anthropic's API {settings.API_URL} " in page
    assert "nan is a stable name" in page
    assert "answers to its own name too, some-model ," in page
    assert "The context is 65432 tokens today, and the longest answer 12345." in page


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


def test_aiders_files_are_all_in_its_line_and_may_lose_their_dots(client: Client) -> None:
    page = words(text_of(client, "/docs/examples/aider/"))
    assert "The browser may save a file without the dot that its name begins with" in page
    assert "Rename it then: .aider.conf.yml , .aider.model.metadata.json Or" in page
    assert "which writes: .aider.conf.yml , .aider.model.metadata.json A file" in page
    assert 'for f in ".aider.conf.yml" ".aider.model.metadata.json"; do' in unescape(page)
    assert "NAN_API_KEY of your shell" not in page  # no file of its has a key
    assert "without the dot" not in text_of(client, "/docs/examples/claude-code/")


def test_the_line_speaks_the_language_of_its_page(client: Client) -> None:
    spanish = {"accept-language": "es"}
    page = unescape(client.get("/docs/examples/claude-code/", headers=spanish).content.decode())
    assert "'ya existe, no se ha cambiado'" in page
    assert "'no se ha escrito: pon antes tu clave en la página, o en NAN_API_KEY'" in page
    assert "exists, not changed" not in page


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


def listed(client: Client, query: str) -> list[str]:
    page = client.get(f"/docs/examples/?{query}", headers={"accept-language": "en"})
    return re.findall(r'id="page-([\w-]+)"', page.content.decode())


def test_search_and_filters_work_without_javascript(client: Client) -> None:
    assert listed(client, "q=SIMON&api=chat") == ["llm"]
    assert listed(client, "api=responses&client=terminal") == ["codex", "curl"]
    assert listed(client, "client=codex") == ["codex"]
    assert listed(client, "client=codex&api=messages") == []
    assert len(listed(client, "")) == len([p for p in load("es").values() if not p.is_guide])
    page = text_of(client, "/docs/examples/?client=codex&api=responses&q=agent")
    for chosen in ('<option value="codex" selected>', '<option value="responses" selected>'):
        assert chosen in page
    assert 'value="agent"' in page


def test_guides_are_found_by_api_and_words(client: Client) -> None:
    page = text_of(client, "/docs/examples/?api=embeddings")
    assert '<a href="/docs/embeddings/">' in page
    assert "No example fits" not in page
    assert '<a href="/docs/prefix-cache/">' in text_of(client, "/docs/examples/?q=cache")


def test_a_search_without_a_find_says_what_else(client: Client) -> None:
    assert "No example fits" in text_of(client, "/docs/examples/?q=%3Cscript%3Ezz")
    assert "<script>zz" not in client.get("/docs/examples/?q=<script>zz").content.decode()


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


def test_the_list_costs_the_same_however_many_pages(
    client: Client, slot: Slot, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
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
    assert "Chat: model down Status" in look(example)
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


def test_limits_on_the_page_of_errors_are_the_settings(client: Client, settings: object) -> None:
    settings.MEMBER_RPM, settings.MEMBER_PARALLEL = 77, 3
    page = text_of(client, "/docs/errors/")
    assert "more than 77 requests in a minute" in page
    assert "more than 3 at once" in page
    for code in ("model_retired", "model_rotating", "requests_per_minute", "max_parallel_requests"):
        assert code in page
