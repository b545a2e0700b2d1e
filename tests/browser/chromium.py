"""Debian's Chromium for tests: starts it, and says what is wrong with a page that it shows."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text()
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
RUN_AXE = """async (rules) => {
    const only = rules.length ? {runOnly: {type: 'rule', values: rules}} : {}
    const options = {resultTypes: ['violations'], preload: false, ...only}
    return (await axe.run(options)).violations
        .filter(found => ['serious', 'critical'].includes(found.impact))
        .map(found => found.id + ': ' + found.nodes.map(node => node.html).join(' | '))
}"""
# What the theme and the width of the window change.
BY_LOOK = ["color-contrast", "link-in-text-block", "target-size"]
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@contextmanager
def chromium() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not path:
        raise FileNotFoundError("No Chromium found. Install it: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


class Complaints:
    """Console errors of a page (what the CSP refused among them), read and emptied by `take`."""

    def __init__(self, page: Page) -> None:
        self._lines: list[str] = []
        page.on("console", self._note)
        page.on("pageerror", lambda error: self._lines.append(str(error)))

    def _note(self, message: ConsoleMessage) -> None:
        # A page that is a 404 on purpose is not a fault.
        if message.type in {"error", "warning"} and "status of 4" not in message.text:
            self._lines.append(message.text)

    def take(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines


def violations(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """Serious and critical findings of axe. Evaluated over CDP, which the page's CSP lets pass."""
    session = page.context.new_cdp_session(page)
    session.send("Runtime.evaluate", {"expression": AXE})
    session.detach()
    found: list[str] = page.evaluate(RUN_AXE, list(rules))
    return found


def faults_of(page: Page, *, language: str = "") -> list[str]:
    """What is wrong with the page that is open: axe, h1, title, language, sideways scrolling."""
    found = violations(page)
    if page.locator("h1").count() != 1:
        found.append(f"h1: {page.locator('h1').all_inner_texts()}")
    if not page.title().removesuffix("· NaN").strip():
        found.append("no title")
    if language and page.locator("html").get_attribute("lang") != language:
        found.append(f"lang: {page.locator('html').get_attribute('lang')}")
    return [*found, *too_wide(page)]


def too_wide(page: Page) -> list[str]:
    return ["wider than the screen"] if page.evaluate(TOO_WIDE) else []


def virtual_passkey(page: Page, *, verifies: bool) -> Any:
    """A device that holds passkeys; one that does not verify its user refuses to use them."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": verifies,
    }
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return session
