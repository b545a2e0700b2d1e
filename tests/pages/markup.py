"""Reads a page as a browser would and says what the house rules forbid."""

import re
from html import unescape
from html.parser import HTMLParser

from django.http import HttpResponse
from django.test import Client

DATA_TYPES = {"application/json"}


class Page(HTMLParser):
    """Headings, title and language of a page, and what its content security policy would refuse."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.h1: list[str] = []
        self.title = ""
        self.lang: str | None = None
        self.inline: list[str] = []
        self.skip_target = ""
        self.ids: list[str] = []
        self.label_for: set[str] = set()
        self.inputs: list[dict[str, str | None]] = []
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._open.append(tag)
        if tag == "html":
            self.lang = values.get("lang")
        if tag == "h1":
            self.h1.append("")
        if tag == "a" and values.get("class") == "skip":
            self.skip_target = str(values["href"])
        if tag == "label":
            self.label_for.add(str(values.get("for")))
        if tag in {"input", "select", "textarea"} and values.get("type") != "hidden":
            self.inputs.append(values)
        if values.get("id"):
            self.ids.append(str(values["id"]))
        self._refuse(tag, values)

    def _refuse(self, tag: str, values: dict[str, str | None]) -> None:
        script = tag == "script" and not values.get("src") and values.get("type") not in DATA_TYPES
        if script or tag == "style":
            self.inline.append(f"<{tag}>")
        self.inline += [
            f"{tag} {name}"
            for name, value in values.items()
            if name == "style" or name.startswith("on") or (value or "").startswith("javascript:")
        ]

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "title" in self._open and "svg" not in self._open:
            self.title += data
        elif "h1" in self._open:
            self.h1[-1] += data


def words(html: str) -> str:
    """What a reader sees of a page, in one line; as it was sent, so with `&lt;` for `<`."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def read(response: HttpResponse) -> Page:
    return Page(response.content.decode())


def faults(response: HttpResponse, *, language: str) -> list[str]:
    """What is wrong with a page; nothing, for a page that keeps the rules."""
    page = read(response)
    found = [f"inline: {name}" for name in page.inline]
    if len(page.h1) != 1 or not page.h1[0].strip():
        found.append(f"h1: {page.h1}")
    if page.title.strip().removesuffix("· NaN").strip() == "":
        found.append(f"title: {page.title!r}")
    if page.lang != language:
        found.append(f"lang: {page.lang}")
    repeated = {name for name in page.ids if page.ids.count(name) > 1}
    found += [f"id twice: {name}" for name in sorted(repeated)]
    found += [
        f"no label: {field}"
        for field in page.inputs
        if field.get("id") not in page.label_for and not field.get("aria-label")
    ]
    return found


def text_of(client: Client, path: str, language: str = "en") -> str:
    return unescape(client.get(path, headers={"accept-language": language}).content.decode())
