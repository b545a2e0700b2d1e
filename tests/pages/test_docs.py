"""Pages of /docs/: read by anyone, in both languages, filled from rows and settings."""

import re
from html import unescape

import pytest
from django.conf import settings
from django.test import Client

from inference.deployment import STREAM_TIMEOUT, TIMEOUT
from inference.docs.pages import load
from inference.models import CatalogModel, Slot
from tests.pages.markup import faults, read, text_of, words

pytestmark = pytest.mark.django_db
PAGES = [
    "/docs/",
    "/docs/examples/",
    *(
        f"/docs/{page.name}/" if page.is_guide else f"/docs/examples/{page.name}/"
        for page in load("es").values()
    ),
]


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


def test_the_line_says_where_its_folder_is_right(client: Client) -> None:
    assert "Only on Linux: elsewhere" in words(text_of(client, "/docs/examples/llm/"))
    assert "Only on" not in words(text_of(client, "/docs/examples/opencode-1/"))


def test_who_copies_a_key_is_told_to_keep_it_out_of_repositories(client: Client) -> None:
    """Every page that shows one: in its own words, or guides in words of them all."""
    for page in load("en").values():
        path = f"/docs/{page.name}/" if page.is_guide else f"/docs/examples/{page.name}/"
        shown = text_of(client, path)
        if "<span data-key>" in shown:
            assert "repository" in words(shown), path


def test_how_long_an_answer_may_take_is_what_the_gateway_is_told(client: Client) -> None:
    page = words(text_of(client, "/docs/streaming/"))
    assert f"After {STREAM_TIMEOUT // 60} minutes without anything new it ends" in page
    assert f"is not streamed ends after {TIMEOUT // 60} minutes" in page


def test_limits_on_the_page_of_errors_are_the_settings(client: Client, settings: object) -> None:
    settings.MEMBER_RPM, settings.MEMBER_PARALLEL = 77, 3
    page = text_of(client, "/docs/errors/")
    assert "more than 77 requests in a minute" in page
    assert "more than 3 at once" in page
    for code in ("model_retired", "model_rotating", "requests_per_minute", "max_parallel_requests"):
        assert code in page
