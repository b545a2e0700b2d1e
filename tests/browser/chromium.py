"""Debian's Chromium for tests: starts it, and says what is wrong with a page that it shows."""

import os
import shutil
from collections.abc import Iterator
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
RUN_AXE = """async () => (await axe.run()).violations
    .filter(found => ['serious', 'critical'].includes(found.impact))
    .map(found => found.id + ': ' + found.nodes.map(node => node.html).join(' | '))"""
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


def violations(page: Page) -> list[str]:
    """Serious and critical findings of axe. Evaluated over CDP, which the page's CSP lets pass."""
    session = page.context.new_cdp_session(page)
    session.send("Runtime.evaluate", {"expression": AXE})
    session.detach()
    found: list[str] = page.evaluate(RUN_AXE)
    return found


def look(page: Page, url: str, complaints: Complaints) -> list[str]:
    """Opens a page and lists its faults: axe, one h1, console, sideways scrolling."""
    response = page.goto(url)
    found = [*complaints.take(), *violations(page)]
    if response is None or response.status >= 500:
        found.append(f"status {response and response.status}")
    if page.locator("h1").count() != 1:
        found.append(f"{page.locator('h1').count()} h1")
    if page.evaluate(TOO_WIDE):
        found.append("wider than the screen")
    return found


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
