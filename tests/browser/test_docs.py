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
    code = page.locator("#text pre").first
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
    expect(page.locator("#text pre").first).to_contain_text("YOUR_KEY")
    assert page.locator("#own-key").input_value() == ""
    assert complaints.take() == []
    context.close()


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
    expect(page.locator("#text pre").nth(1)).to_contain_text('wire_api = "responses"')
    with page.expect_download() as download:
        page.get_by_role("link", name="Download config.toml").click()
    assert "env_key" in Path(download.value.path()).read_text()
    context.close()
