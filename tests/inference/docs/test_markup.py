"""What members write comes out inert."""

from html.parser import HTMLParser

import pytest

from inference.docs import markup

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![x](https://evil.example/pixel.png)",
    "[x](javascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    '[x](https://ok.example/ "onmouseover=alert(1)")',
    "<a href='https://ok.example' onclick='alert(1)' style='color:red'>x</a>",
    "<iframe src=https://evil.example></iframe>",
    "```html\n<script>alert(1)</script>\n```",
    "<svg/onload=alert(1)>",
    "[x]: javascript:alert(1)\n\n[x]",
    "<form action=/key/revoke method=post><button>x</button></form>",
    "<style>*{display:none}</style>",
    '<div id="own-key" class="notice bad">x</div>',
]


ALLOWED = {
    "a": {"href", "rel", "title"},
    "div": {"class", "data-copy", "tabindex", "role", "aria-label"},
    "pre": {"tabindex", "role", "aria-label"},
    "ol": {"start"},
}


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


@pytest.mark.parametrize("source", HOSTILE)
def test_hostile_text_is_inert(source: str) -> None:
    for tag, attributes in Tags(markup.text(source)).seen:
        assert tag in {"p", "a", "pre", "code", "div", "em"}
        assert set(attributes) <= ALLOWED.get(tag, set())
        assert (attributes.get("href") or "https://").startswith("https://")


def test_links_are_no_recommendation() -> None:
    assert markup.text("[x](https://a.example/)") == (
        '<p><a href="https://a.example/" rel="nofollow noopener">x</a></p>\n'
    )


def test_raw_html_is_text() -> None:
    assert markup.text("<b onclick=x>hi</b>") == "<p>&lt;b onclick=x&gt;hi&lt;/b&gt;</p>\n"


def test_headings_start_below_the_pages_own() -> None:
    assert markup.text("# a\n\n## b") == "<h3>a</h3>\n<h4>b</h4>\n"


def test_places_of_our_pages_are_not_filled_in_theirs() -> None:
    """A member can't make the page write what only our own files may ask for."""
    assert "{{ key }}" in markup.text("`{{ key }}`")
    assert "<span" not in markup.text("<span data-key>x</span>")


def test_deep_nesting_ends() -> None:
    assert len(markup.text(">" * 5000 + "x")) < 20_000


def test_values_are_put_in_as_text() -> None:
    """Other braces, of the page and of the values, are just braces."""
    line = markup.fill_line('{"m": "{{ model }}", {}}', {"model": "<{0}&'>", "key": "k"})
    assert line == "{&quot;m&quot;: &quot;&lt;{0}&amp;&#x27;&gt;&quot;, {}}"


def test_the_place_of_the_key_is_marked() -> None:
    assert markup.fill_line("{{ key }}", {"key": "<k>"}) == "<span data-key>&lt;k&gt;</span>"
