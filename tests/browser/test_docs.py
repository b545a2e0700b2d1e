"""The reader's key in the examples stays in her browser."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, expect
from pytest_django.live_server_helper import LiveServer

from tests.browser.chromium import Complaints
from tests.browser.docs_states import served

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "sk-abcdefghijklmnopqrstuvwx7Qf2"


def sent_by(page: Page) -> list[str]:
    """Everything that leaves the page, whole: addresses, headers, bodies."""
    seen: list[str] = []

    def note(request: Request) -> None:
        seen.append(f"{request.url} {json.dumps(request.headers)} {request.post_data}")

    page.context.on("request", note)
    return seen


def test_the_key_is_put_in_by_her_browser_and_goes_nowhere(
    browser: Browser, live_server: LiveServer
) -> None:
    served()
    context = browser.new_context(locale="en", accept_downloads=True)
    page = context.new_page()
    complaints, sent = Complaints(page), sent_by(page)
    page.goto(f"{live_server.url}/docs/examples/claude-code/")
    code = page.locator("#text pre").nth(1)  # after how to install it
    expect(code).to_contain_text('"ANTHROPIC_AUTH_TOKEN": "YOUR_KEY"')
    page.get_by_role("textbox", name="Your key").fill(f" {KEY} ")
    expect(code).to_contain_text(f'"ANTHROPIC_AUTH_TOKEN": "{KEY}"')
    expect(page.locator("section", has_text="As a file").locator("pre")).to_contain_text(KEY)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download settings.json").click()
    file = json.loads(Path(download.value.path()).read_text())
    assert download.value.suggested_filename == "settings.json"
    assert file["env"]["ANTHROPIC_AUTH_TOKEN"] == KEY
    page.get_by_role("button", name="Español").click()
    page.wait_for_load_state("load")
    assert any("/i18n/setlang/" in request for request in sent)
    assert [request for request in sent if KEY in request] == []
    stores = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    assert KEY not in page.evaluate(stores)
    assert KEY not in page.content()
    page.go_back()
    page.wait_for_load_state("load")
    expect(code).to_contain_text("YOUR_KEY")
    assert page.locator("#own-key").input_value() == ""
    assert complaints.take() == []
    context.close()


PASTED = (
    f"Bearer {KEY}",
    f"Authorization: Bearer {KEY}",
    f'"{KEY}"',
    f"“{KEY}”",
    f"'{KEY}',",
    f"\t{KEY}\n",
    f"export NAN_API_KEY='{KEY}';",
    f'"apiKey": "{KEY}",',
    f"x-api-key: {KEY[:12]}\n{KEY[12:]}",
    f"\u200b{KEY}\ufeff",
)
WRONG = ("hunter2", "Bearer", "sk-abc", f"{KEY}$(id)", "https://nan.example/key/")


def test_what_was_copied_along_with_the_key_is_left_out(
    browser: Browser, live_server: LiveServer
) -> None:
    served()
    context = browser.new_context(locale="en", permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{live_server.url}/docs/examples/curl/")
    code, field = page.locator("#text pre").first, page.locator("#own-key")
    error = page.get_by_text("This does not look like a key")
    for pasted in (*PASTED, *WRONG):
        field.fill("")
        page.evaluate("text => navigator.clipboard.writeText(text)", pasted)
        field.press("Control+V")
        shown, told = code.inner_text().strip(), error.is_visible()
        expected = (KEY, False) if pasted in PASTED else ("YOUR_KEY", True)
        assert (shown, told) == (f"export NAN_API_KEY={expected[0]}", expected[1]), pasted
        assert field.input_value() == KEY or told, pasted
    field.fill("")
    expect(error).to_be_hidden()
    context.close()


def test_half_a_key_is_none_once_she_has_left_the_field(
    browser: Browser, live_server: LiveServer
) -> None:
    served()
    page = browser.new_page(locale="en")
    page.goto(f"{live_server.url}/docs/examples/curl/")
    field, error = page.locator("#own-key"), page.get_by_text("This does not look like a key")
    field.press_sequentially(KEY[:10])
    expect(error).to_be_hidden()
    field.blur()
    expect(error).to_be_visible()
    expect(field).to_have_attribute("aria-invalid", "true")
    field.press("End")
    field.press_sequentially(KEY[10:])
    expect(error).to_be_hidden()
    expect(page.locator("#text pre").first).to_have_text(f"export NAN_API_KEY={KEY}")
    page.close()


def test_what_is_copied_holds_the_key(browser: Browser, live_server: LiveServer) -> None:
    served()
    context = browser.new_context(locale="en", permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{live_server.url}/docs/examples/curl/")
    page.get_by_role("textbox", name="Your key").fill(KEY)
    page.locator("#text .code").first.get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == f"export NAN_API_KEY={KEY}"
    context.close()


def test_the_page_is_whole_without_javascript(browser: Browser, live_server: LiveServer) -> None:
    served()
    context = browser.new_context(locale="en", java_script_enabled=False, accept_downloads=True)
    page = context.new_page()
    page.goto(f"{live_server.url}/docs/examples/codex/")
    expect(page.locator("#own-key")).to_be_hidden()
    expect(page.locator("#text pre").nth(2)).to_contain_text('wire_api = "responses"')
    with page.expect_download() as download:
        page.get_by_role("link", name="Download config.toml").click()
    assert "env_key" in Path(download.value.path()).read_text()
    context.close()
