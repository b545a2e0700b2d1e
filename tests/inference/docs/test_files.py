"""The files of /docs/: both languages alike, and nothing in them that should come from rows."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from django.conf import settings

from inference.docs import markup, pages, shell, values, verified
from inference.docs.pages import CODE, LANGUAGES, load
from inference.docs.values import Reading
from inference.examples import SOURCES
from inference.models import CatalogModel, Kind, Slot
from inference.probes.calls import BY_NAME
from tests.clients.catalogue import CLIENTS as RUN
from tests.clients.catalogue import PROMPT, SYSTEM
from tests.clients.running import Failed, check

NAMES = sorted(load("es"))
CLIENTS = [name for name in NAMES if not load("es")[name].is_guide]
MODEL = CatalogModel(
    name="some-model",
    title="Some Model",
    kind=Kind.CHAT,
    context_length=65_432,
    max_output=12_345,
    capabilities=["tools", "vision"],
)
NOW = Reading(
    chat=Slot(name="stable", number=1, model=MODEL),
    embedding=Slot(name="stable-embed", kind=Kind.EMBEDDING, number=2),
)
FILLED = values.values(NOW)


def places(text: str) -> list[str]:
    return sorted(markup.PLACE.findall(text))


def code_of(name: str) -> dict[str, str]:
    return {
        file.name: markup.fill_text(file.read_text(), FILLED)
        for file in sorted((CODE / name).glob("*"))
    }


def test_continue_is_told_of_tools_only_where_the_model_has_them() -> None:
    file = (CODE / "continue" / "config.yaml").read_text()
    plain = CatalogModel(name="plain", kind=Kind.CHAT, context_length=2048, max_output=512)
    for model, claimed in ((MODEL, ["tool_use"]), (plain, [])):
        now = Reading(chat=Slot(name="stable", number=1, model=model), embedding=None)
        (told,) = yaml.safe_load(markup.fill_text(file, values.values(now)))["models"]
        assert told["capabilities"] == claimed


def test_every_client_and_guide_has_a_page_in_both_languages() -> None:
    assert sorted(load("en")) == NAMES
    assert sorted(CLIENTS) == [
        *("ai-sdk", "aider", "anthropic-sdk", "claude-code", "cline", "codex", "continue", "curl"),
        *("cursor", "kilo", "langchain", "llm", "open-webui", "openai-js", "openai-python"),
        *("opencode", "opencode-1", "qwen-code", "zed"),
    ]
    assert sorted(set(NAMES) - set(CLIENTS)) == [
        *("embeddings", "errors", "first-call", "images", "prefix-cache", "reasoning"),
        *("rotations", "streaming", "tool-calls"),
    ]
    assert "legacy" in load("en")["continue"].title


def test_pages_that_have_a_file_have_it_to_download_and_in_one_line() -> None:
    """The others have none: two are set up by mouse, and one of them in its own terminal."""
    assert [name for name in CLIENTS if not load("en")[name].file] == ["cline", "cursor"]


SAME_PROGRAM = {"opencode", "opencode-1"}
"""Two versions of one program, which looks for its file at one place."""


def test_no_page_puts_its_file_where_another_page_does() -> None:
    """Who follows two pages in one folder keeps both."""
    targets = [page.path for page in load("en").values() if page.path and page.name != "opencode-1"]
    assert sorted(targets) == sorted(set(targets))
    assert len({load("en")[name].path for name in SAME_PROGRAM}) == 1


def test_no_page_has_a_program_of_the_same_name_as_another() -> None:
    """Nor of a module's that it imports: Python would take the reader's file for it."""
    files = [file for page in load("en").values() for file in page.files]
    programs = [file for file in files if Path(file).suffix in (".py", ".mjs", ".sh")]
    assert sorted(programs) == sorted(set(programs))
    assert {Path(file).stem for file in programs} & {"openai", "anthropic", "langchain"} == set()


@pytest.mark.parametrize("name", NAMES)
def test_pages_differ_in_words_only(name: str) -> None:
    spanish, english = load("es")[name], load("en")[name]
    same = ("kind", "order", "apis", "needs", "unverified", "file", "path", "system", "words")
    for field in same:
        assert getattr(spanish, field) == getattr(english, field), field
    assert spanish.files == english.files
    assert places(spanish.body) == places(english.body)
    headings = [re.findall(r"^#+ ", page.body, re.M) for page in (spanish, english)]
    assert headings[0] == headings[1]
    assert spanish.title
    assert spanish.body != english.body


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_every_page_can_be_filled(name: str, language: str) -> None:
    page = load(language)[name]
    html = markup.fill(markup.page(page), FILLED)
    assert "{{" not in html
    assert set(page.needs) <= set(BY_NAME)
    if page.file:
        line = shell.one_line(page, "https://x.example/")
        assert markup.PLACE.sub("", line).count("{{") == 0
        assert page.file in page.files
        assert page.path in page.targets


def test_no_page_states_a_figure_or_address_of_its_own() -> None:
    """What changes with a rotation or a setting stands in pages as a place only."""
    own = [
        r"https?://(?!docs\.|opencode\.ai/config\.json)[a-z0-9.-]+:\d+",
        r"\b(131072|32768|65536|8192)\b",
        r"qwen3\.\d|gpt-oss|gemma",
        re.escape(settings.API_URL),
        r"\bsk-[A-Za-z0-9]{4,}",
    ]
    texts = [file for file in CODE.parent.rglob("*") if file.suffix in (".md", *SUFFIXES)]
    found = [
        (file.name, match[0])
        for file in texts
        if file.parent != CODE.parent
        for pattern in own
        for match in re.finditer(pattern, file.read_text(), re.IGNORECASE)
    ]
    assert found == []


SUFFIXES = (".json", ".toml", ".yml", ".yaml", ".py", ".mjs", ".sh", ".env")


@pytest.mark.parametrize("name", CLIENTS)
def test_configurations_can_be_read_by_their_own_format(name: str) -> None:
    for file, text in code_of(name).items():
        suffix = Path(file).suffix
        if suffix == ".json":
            json.loads(text)
        elif suffix == ".toml":
            tomllib.loads(text)
        elif suffix in (".yaml", ".yml"):
            yaml.safe_load(text)
        elif suffix == ".py":
            compile(text, file, "exec")


def test_every_code_file_is_shown_by_its_page() -> None:
    shown = {(name, file) for name in CLIENTS for file in load("en")[name].files}
    assert {(file.parent.name, file.name) for file in CODE.glob("*/*")} == shown


def test_claude_code_keeps_the_prefix_and_asks_for_what_fits() -> None:
    """D4."""
    env = json.loads(code_of("claude-code")["settings.json"])["env"]
    assert env["CLAUDE_CODE_ATTRIBUTION_HEADER"] == "0"
    assert int(env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"]) <= MODEL.max_output
    assert env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "65432"
    assert env["ANTHROPIC_BASE_URL"] == settings.API_URL
    assert "ANTHROPIC_API_KEY" not in env
    small = Reading(
        chat=Slot(name="nan", model=CatalogModel(context_length=4096, max_output=9000)),
        embedding=None,
    )
    assert values.values(small)["short_output"] == "4096"


def test_qwen_code_knows_how_much_room_there_is() -> None:
    """D4: it asks for 32000 tokens an answer, or for what this leaves it."""
    (model,) = json.loads(code_of("qwen-code")["settings.json"])["modelProviders"]["openai"]
    assert model["generationConfig"]["contextWindowSize"] == 65_432


def test_codex_speaks_responses() -> None:
    """D5: it has dropped "chat"."""
    config = tomllib.loads(code_of("codex")["config.toml"])
    assert config["model_providers"]["nan"]["wire_api"] == "responses"
    assert config["model_providers"]["nan"]["base_url"] == f"{settings.API_URL}/v1"
    assert "profile" not in config
    assert "profiles" not in config


def test_addresses_have_a_v1_where_the_client_needs_it() -> None:
    with_v1 = json.loads(code_of("opencode-1")["opencode.json"])["provider"]["nan"]["options"]
    assert with_v1["baseURL"] == f"{settings.API_URL}/v1"
    assert f'base_url="{settings.API_URL}",' in code_of("anthropic-sdk")["hello_anthropic.py"]


def test_what_nobody_knows_yet_is_said_and_not_invented() -> None:
    empty = values.values(Reading(chat=None, embedding=None))
    assert (empty["context"], empty["output"], empty["model_name"]) == ("UNKNOWN",) * 3
    assert empty["model"] == settings.PUBLIC_MODEL


def test_the_search_ignores_case_accents_and_order() -> None:
    assert [page.name for page in pages.listing(text="CLAUDE code")][:1] == ["claude-code"]
    assert "cline" in [page.name for page in pages.listing(text="roo")]
    assert [page.name for page in pages.listing(api="responses", client="terminal")] == [
        "codex",
        "curl",
    ]
    assert pages.listing(text="zzz") == []
    assert load("es")["errors"].says("límites ERRORES")
    assert load("es")["errors"].says("limites")


@pytest.mark.parametrize("name", NAMES)
def test_the_routes_of_a_page_are_those_of_its_calls(name: str) -> None:
    page = load("en")[name]
    used = {BY_NAME[call].api for call in page.needs}
    assert page.apis == tuple(api for api in pages.APIS if api in used)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_page_needs_the_calls_that_its_client_made_and_no_other(name: str) -> None:
    """As `make test-clients` saw them pass; tests/journeys/test_page_code.py has the guides. What
    we have not run says so, and why."""
    page, runs = load("en")[name], verified.of(name)
    assert bool(page.unverified) == (not runs)
    assert page.needs
    if runs:
        assert {call for run in runs for call in run.calls} == set(page.needs)


@pytest.mark.parametrize("name", sorted(verified.read()))
def test_clients_were_run_with_what_their_pages_show_now(name: str) -> None:
    """Else `make test-clients ARGS=NAME` again, and commit what it writes."""
    page = load("en")[name]
    assert {run.shown for run in verified.of(name)} == {verified.shown(page)}


INSTALL = re.compile(
    r"^(?:npm install(?: -g)?|pip install|uv tool install(?: --python \S+)?) (.+)$", re.M
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_pages_install_is_what_was_run(language: str) -> None:
    """In every page whose client is in a registry, by name; a version, where the page has one, is
    that which was run or the beginning of it."""
    told = {
        (page.name, *named(package))
        for page in load(language).values()
        for line in INSTALL.findall(page.body)
        for package in line.split()
    }
    run = {(c.page, *named(p)) for c in RUN if c.registry != SYSTEM for p in c.packages}
    assert {one[:2] for one in told} == {one[:2] for one in run}
    versions = {one[:2]: one[2] for one in run}
    assert all(f"{versions[page, name]}.".startswith(f"{v}." * bool(v)) for page, name, v in told)


def named(package: str) -> tuple[str, str]:
    """Its name and version: `@a/b@1`, `c==2`, or either without one."""
    found = re.fullmatch(r"(@?[^@=]+)(?:(?:@|==)(.+))?", package)
    assert found
    return found[1], found[2] or ""


def test_the_key_page_gives_files_that_were_run() -> None:
    run = {(client.page, label) for client in RUN for label in client.files}
    assert set(SOURCES) <= run


def test_a_client_that_repeats_the_question_has_not_answered() -> None:
    client = next(client for client in RUN if client.page == "codex")
    with pytest.raises(Failed):
        check(client, f"user: {PROMPT}\n")
    check(client, f"user: {PROMPT}\nHola\n")


def test_the_versions_on_pages_are_those_that_are_run() -> None:
    pinned = {(c.page, c.package, c.version) for c in RUN if c.registry != SYSTEM}
    system = {(c.page, c.package) for c in RUN if c.registry == SYSTEM}
    shown = {(name, r.package, r.version) for name, runs in verified.read().items() for r in runs}
    assert {one for one in shown if one[:2] not in system} == pinned
    assert {one[:2] for one in shown} >= system


def test_verified_names_pages_that_exist() -> None:
    assert set(verified.read()) <= set(CLIENTS)
    for runs in verified.read().values():
        assert all(re.fullmatch(r"[\w.+-]+", run.version) for run in runs)
