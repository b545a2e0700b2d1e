"""The pages of /docs/: templates/docs/LANGUAGE/NAME.md, each with a small front matter.

    ---
    title: opencode
    summary: One sentence.
    kind: terminal              (one of KINDS)
    order: 10                   (place in lists)
    apis: chat                  (of APIS, by commas)
    needs: chat, stream, tools  (calls that it makes, so that must work: names of probes)
    unverified: window          (one of UNVERIFIED: why we have not run the client; else absent)
    file: opencode.json         (its configuration, in templates/docs/code/NAME/; may be absent)
    path: ~/.config/opencode/opencode.json   (where `file` goes; its other files, beside it)
    system: Linux               (the only one on which `path` is right; else absent)
    words: agent, tui           (found by the search; may be absent)
    ---

Both languages have the same pages with the same front matter but for the words (a test says so).
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import get_language, pgettext_lazy
from django.utils.translation import gettext_lazy as _

FOLDER = Path(settings.BASE_DIR) / "templates" / "docs"
CODE = FOLDER / "code"
LANGUAGES = ("es", "en")
GUIDE = "guide"
KINDS: dict[str, Promise] = {
    "terminal": pgettext_lazy("docs", "In the terminal"),
    "editor": _("Editors"),
    "app": pgettext_lazy("docs", "Applications"),
    "library": _("Libraries"),
    GUIDE: _("Guides"),
}
APIS: dict[str, str] = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "embeddings": "/v1/embeddings",
}


UNVERIFIED: dict[str, Promise] = {
    "window": _("it needs a screen, and we try clients on machines without one."),
    "application": _("it is a whole application of its own, which we have not set up."),
    "registry": _("its package is in no registry that we install from."),
}
"""Why we have not run a client ourselves: ends a sentence."""


class BadPage(Exception):
    """A file that can't be read; the message names it and the line."""


@dataclass(frozen=True, kw_only=True)
class Page:
    name: str
    language: str
    title: str
    summary: str
    kind: str
    order: int
    apis: tuple[str, ...]
    needs: tuple[str, ...]
    unverified: str
    file: str
    path: str
    system: str
    words: tuple[str, ...]
    body: str

    @property
    def is_guide(self) -> bool:
        return self.kind == GUIDE

    @property
    def kind_title(self) -> Promise:
        return KINDS[self.kind]

    @property
    def why_unverified(self) -> Promise | str:
        return UNVERIFIED[self.unverified] if self.unverified else ""

    @property
    def routes(self) -> list[str]:
        return [APIS[api] for api in self.apis]

    @property
    def files(self) -> list[str]:
        """Of its own, in the order in which it shows them."""
        return re.findall(r"^```\w+ (\S+)$", self.body, re.MULTILINE)

    @property
    def targets(self) -> list[str]:
        """Where its files go: all beside the one that `path` names."""
        folder = self.path.removesuffix(self.file)
        return [folder + file for file in self.files] if self.path else []

    @property
    def dotted(self) -> list[str]:
        """Files that browsers save under another name."""
        return [file for file in self.files if file.startswith(".")]

    def says(self, text: str) -> bool:
        """Every word of the search is somewhere in the page; accents and case don't matter."""
        return all(word in self._searched for word in _plain(text).split())

    @cached_property
    def _searched(self) -> str:
        return _plain(" ".join((self.title, self.summary, *self.words, self.body)))


def language() -> str:
    """Of the reader, among those that pages are written in."""
    return "en" if (get_language() or "es").startswith("en") else "es"


@cache
def load(language: str) -> dict[str, Page]:
    """Every page of a language, in the order of lists."""
    found = [_read(file, language) for file in sorted((FOLDER / language).glob("*.md"))]
    kinds = list(KINDS)
    found.sort(key=lambda page: (kinds.index(page.kind), page.order, page.name))
    return {page.name: page for page in found}


def find(name: str, *, guide: bool) -> Page | None:
    page = load(language()).get(name)
    return page if page and page.is_guide == guide else None


def client_title(name: str) -> str:
    """As its page has it; its name where the page has gone."""
    page = find(name, guide=False)
    return page.title if page else name


def listing(*, text: str = "", client: str = "", api: str = "") -> list[Page]:
    """Client pages, for the list of examples. `client`: the name of one, or a kind of them."""
    return [
        page
        for page in load(language()).values()
        if not page.is_guide
        and client in ("", page.kind, page.name)
        and api in ("", *page.apis)
        and page.says(text)
    ]


def guides(*, text: str = "", api: str = "") -> list[Page]:
    return [
        page
        for page in load(language()).values()
        if page.is_guide and api in ("", *page.apis) and page.says(text)
    ]


def _read(file: Path, language: str) -> Page:
    _nothing, head, body = file.read_text(encoding="utf-8").split("---\n", 2)
    fields: dict[str, str] = {}
    for line in head.splitlines():
        name, colon, value = line.partition(":")
        if not colon:
            raise BadPage(f"{file.name} ({language}): {line}")
        fields[name.strip()] = value.strip()
    try:
        return Page(
            name=file.stem,
            language=language,
            title=fields.pop("title"),
            summary=fields.pop("summary"),
            kind=_known(fields.pop("kind"), KINDS),
            order=int(fields.pop("order")),
            apis=tuple(_known(api, APIS) for api in _list(fields.pop("apis", ""))),
            needs=_list(fields.pop("needs", "")),
            unverified=_known(fields.pop("unverified", ""), {"": "", **UNVERIFIED}),
            file=fields.pop("file", ""),
            path=fields.pop("path", ""),
            system=fields.pop("system", ""),
            words=_list(fields.pop("words", "")),
            body=_known_fields(fields, body),
        )
    except (KeyError, ValueError) as problem:
        raise BadPage(f"{file.name} ({language}): {problem}") from None


def _known_fields(left: dict[str, str], body: str) -> str:
    if left:
        raise ValueError(f"unknown fields: {', '.join(left)}")
    return body


def _known(value: str, among: Mapping[str, Promise | str]) -> str:
    if value not in among:
        raise ValueError(f"{value} is none of {', '.join(among)}")
    return value


def _list(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))
