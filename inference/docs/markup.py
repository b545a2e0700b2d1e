"""Markdown to HTML. Whatever wrote it, what comes out is inert: no scripts, styles or pictures.

`page` is for our own pages (headings with anchors, code from files, places to be filled in);
`text` for what members write.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import nh3
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify
from django.utils.translation import gettext
from markdown_it import MarkdownIt
from markdown_it.token import Token

from inference.docs.pages import CODE, BadPage, Page

PLACE = re.compile(r"\{\{ (\w+) \}\}")
TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td", "div", "span"),
}
ATTRIBUTES = {
    "a": {"href"},
    "h2": {"id"},
    "h3": {"id"},
    "div": {"class", "data-copy", "role", "aria-label", "tabindex"},
    "pre": {"tabindex", "role", "aria-label"},
    "ol": {"start"},
}
OUR_SCHEMES = {"https", "http"}
_ELSEWHERE = re.compile(r"https?://[^/?#\\]+(?:[/?#]|\Z)", re.IGNORECASE)
_HERE = re.compile(r"/docs/[\w/-]*(?:#[\w-]*)?\Z")
CALM = 3
"""Headings of members begin at this level, below the page's own."""


@cache
def _markdown(*, ours: bool) -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": 20})
    made.enable(["table", "strikethrough"])
    if not ours:
        made.disable("image")
    for kind in ("fence", "code_block"):
        made.add_render_rule(kind, _fence)
    made.add_render_rule("table_open", _table_open)
    made.add_render_rule("table_close", _table_close)
    return made


@cache
def page(page: Page) -> SafeString:
    """With its places still open: see `fill`. The files don't change while the product runs."""
    tokens = _markdown(ours=True).parse(page.body)
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", slugify(PLACE.sub("", following.content)))
    for token in tokens:
        if token.type == "fence":
            file = _file_of(token.info)
            token.content = read_code(page.name, file) if file else token.content
            token.meta = {"named": file or page.title}
    return _clean_html(tokens, ours=True)


def read_code(name: str, file: str) -> str:
    path = CODE / name / file
    if not path.is_file():
        raise BadPage(f"{name}: there is no {path}")
    return path.read_text(encoding="utf-8")


def _file_of(info: str) -> str:
    """```` ```json opencode.json ````: the second word is a file of this page's own."""
    _language, _space, file = info.strip().partition(" ")
    return file.strip()


def fill(html: SafeString, values: Mapping[str, str]) -> SafeString:
    """Puts values, as text, into the places of a rendered page. The key's place is one that the
    reader's own browser can fill."""
    key = format_html("<span data-key>{}</span>", values["key"])
    return format_html(_with_fields(html), **{**values, "key": key})


def _with_fields(html: SafeString) -> str:
    """As `str.format` has them: `{name}` for each place, any other brace doubled."""
    parts = PLACE.split(html)  # what stands between places, and their names, by turns
    parts[::2] = [part.replace("{", "{{").replace("}", "}}") for part in parts[::2]]
    parts[1::2] = [f"{{{name}}}" for name in parts[1::2]]
    return "".join(parts)


def fill_line(text: str, values: Mapping[str, str]) -> SafeString:
    """As `fill`, for plain text that is not HTML yet."""
    return fill(escape(text), values)


def fill_text(text: str, values: Mapping[str, str]) -> str:
    return PLACE.sub(lambda place: values[place[1]], text)


def text(source: str) -> SafeString:
    """What a member wrote. Headings start below the page's; links are no recommendation."""
    tokens = _markdown(ours=False).parse(source)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, CALM + int(token.tag[1]) - 1)}"
        token.children = _honest_links(token.children or [])
    return _clean_html(tokens, ours=False)


def _honest_links(tokens: Sequence[Token]) -> list[Token]:
    """Of links that don't say plainly where they lead, the words alone are left.

    They may lead to another site by its whole address, or to our docs; not to `//host` (whose
    scheme is the reader's page's), not to pages of hers such as `/key/revoke/`, not to `mailto:`.
    """
    left: list[Token] = []
    dropped = False
    for token in tokens:
        if token.type == "link_open":
            dropped = not _is_honest(str(token.attrGet("href") or ""))
        if not (dropped and token.type in ("link_open", "link_close")):
            left.append(token)
    return left


def _is_honest(address: str) -> bool:
    """Not with a name before the host either: `https://us.example@them.example/`."""
    host = _ELSEWHERE.match(address)
    return "@" not in host[0] if host else bool(_HERE.match(address))


def _clean_html(tokens: Sequence[Token], *, ours: bool) -> SafeString:
    """Nothing but TAGS and ATTRIBUTES, whatever the tokens say."""
    markdown = _markdown(ours=ours)
    html = nh3.clean(
        markdown.renderer.render(tokens, markdown.options, {}),
        tags=TAGS,
        attributes=ATTRIBUTES,
        url_schemes=OUR_SCHEMES,
        link_rel=None if ours else "nofollow noopener",
    )
    # The one place where text becomes HTML that Django does not escape: it has just left nh3, with
    # its lists of tags and attributes. tests/inference/docs/test_markup.py tries to get around it.
    return mark_safe(html)  # noqa: S308


def _fence(self: Any, tokens: list[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    named = escape(str(token.meta.get("named", "")) or gettext("Code"))
    return (
        '<div class="code" data-copy="">'
        f'<pre tabindex="0" role="region" aria-label="{named}"><code>{escape(token.content)}'
        "</code></pre></div>\n"
    )


def _table_open(self: Any, tokens: list[Token], index: int, options: Any, env: Any) -> str:
    label = escape(gettext("Table"))
    return f'<div class="table-wrap" role="region" aria-label="{label}" tabindex="0"><table>\n'


def _table_close(self: Any, tokens: list[Token], index: int, options: Any, env: Any) -> str:
    return "</table></div>\n"
