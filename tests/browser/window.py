"""A person's browser window on the running product."""

import base64
import hmac
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import BrowserContext, Error, Page, Response, expect

from tests.browser.chromium import Complaints
from tests.stack import Stack
from tests.visitor import Visitor

PATIENCE = 60_000  # milliseconds: what the product promises for anything at the gateway


@dataclass
class Window:
    context: BrowserContext
    stack: Stack
    page: Page = field(init=False)
    complaints: Complaints = field(init=False)
    responses: list[Response] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page = self.context.new_page()
        self.complaints = Complaints(self.page)
        self.page.on("response", lambda response: self.responses.append(response))

    def open(self, path: str) -> None:
        self.page.goto(path if path.startswith("http") else self.stack.site + path)

    def press(self, name: str) -> None:
        self.page.locator("main").get_by_role("button", name=name, exact=True).first.click()
        self._settle()

    def follow(self, name: str) -> None:
        self.page.locator("main").get_by_role("link", name=name, exact=True).first.click()
        self._settle()

    def _settle(self) -> None:
        """A page can be clicked before its scripts are there, and nobody hears of it."""
        self.page.wait_for_load_state()

    def fill(self, **values: str) -> None:
        for name, value in values.items():
            self.page.fill(f"main [name={name}]", value)

    def sees(self, words: str, *, seconds: float = 10) -> None:
        expect(self.page.locator("main")).to_contain_text(words, timeout=seconds * 1000)

    def sees_button(self, name: str) -> None:
        button = self.page.get_by_role("button", name=name, exact=True)
        expect(button).to_be_visible(timeout=PATIENCE)

    def sign_in(self, email: str, password: str) -> None:
        self.fill(login=email, password=password)
        self.press("Sign In")

    def sign_out(self) -> None:
        self.page.get_by_role("banner").get_by_role("button", name="Sign out").click()

    def shows_nowhere(self, secret: str) -> None:
        """Neither when she loads the page anew nor when she goes back to it."""
        for move in (self.page.reload, self.page.go_back, self.page.go_forward):
            with suppress(Error):  # where the browser would have to send the form again
                move()
            self.page.wait_for_load_state("load")
            assert secret not in self.page.content()
            assert secret not in self.page.url

    def cookies_hold(self, secret: str) -> list[str]:
        """The Set-Cookie headers so far that give `secret` away, as it is or in base64."""
        headers = [header for response in self.responses for header in response.headers_array()]
        values = [h["value"] for h in headers if h["name"].lower() == "set-cookie"]
        return [value for value in values if secret in value or secret in decoded(value)]


def decoded(cookie: str) -> str:
    """The value of a cookie read as base64, wherever in it the text begins."""
    value = cookie.partition("=")[2].partition(";")[0].translate(str.maketrans("-_", "+/"))
    tries = [value[start:] for start in range(4)]
    return "\n".join(
        base64.b64decode(text[: len(text) // 4 * 4], validate=False).decode("latin-1")
        for text in tries
    )


def code_of(secret: str) -> str:
    """What an authenticator app shows now (RFC 6238)."""
    step = struct.pack(">Q", int(time.time()) // 30)
    digest = hmac.digest(base64.b32decode(secret), step, "sha1")
    offset = digest[-1] & 15
    number = struct.unpack(">I", digest[offset : offset + 4])[0] & 0x7FFFFFFF
    return f"{number % 1_000_000:06}"


Open = Callable[..., Window]


def at(window: Open, person: Visitor, **options: Any) -> Window:
    """A window in which she has signed in."""
    found = window(**options)
    session = person.http.cookies["session"]
    found.context.add_cookies([{"name": "session", "value": session, "url": person.stack.site}])
    return found
