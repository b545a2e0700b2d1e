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
    """D2."""
    for tag, attributes in Tags(markup.text(source)).seen:
        assert tag in {"p", "a", "pre", "code", "div", "em"}
        assert set(attributes) <= ALLOWED.get(tag, set())
        assert (attributes.get("href") or "https://").startswith("https://")


@pytest.mark.parametrize(
    "source",
    [
        "[x](https://a.example)",
        "[x](HTTP://a.example/b?c=d#e)",
        "<https://a.example/b>",
        "[x][1]\n\n[1]: https://a.example/",
        "[x]\n\n[x]: <https://a.example/> 'title'",
        "![x](https://a.example/pixel.png)",
        "**[x](https://a.example/)**",
        "| a |\n|---|\n| [x](https://a.example/) |",
        "[x](/docs/examples/codex/#texts)",
    ],
)
def test_every_kind_of_link_is_no_recommendation(source: str) -> None:
    links = [attributes for tag, attributes in Tags(markup.text(source)).seen if tag == "a"]
    assert [link["rel"] for link in links] == ["nofollow noopener"]
    assert links[0]["href"]


@pytest.mark.parametrize(
    "source",
    [
        "[x](//evil.example)",
        "[x](//evil.example/a 'title')",
        "[x](&#x2f;&#x2f;evil.example)",
        "[x](/\\evil.example)",
        "[x](\\\\\\\\evil.example)",
        "[x](/&#9;/evil.example)",
        "[x][1]\n\n[1]: //evil.example",
        "![x](//evil.example/pixel.png)",
        "<//evil.example>",
        "[x](https:evil.example)",
        "[x](https:/evil.example)",
        "[x](https:///evil.example)",
        "[x](https://nan.example@evil.example/)",
        "[x](https://nan.example:443@evil.example)",
        "<mailto:a@evil.example>",
        "<a@evil.example>",
        "[x](ftp://evil.example/)",
        "[x](file:///etc/passwd)",
        "[x](JaVaScRiPt:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x](vbscript:x)",
        "[x](data:text/html,x)",
        "[x](/key/revoke/)",
        "[x](/docs/../key/)",
        "[x](#own-key)",
        "[x](?next=//evil.example)",
        "[x](evil)",
    ],
)
def test_links_that_do_not_say_where_they_lead_are_words(source: str) -> None:
    assert [tag for tag, _ in Tags(markup.text(f"before {source}")).seen] == ["p"]


def test_only_the_link_itself_goes() -> None:
    assert markup.text("a [x **y**](//b.example) [z](https://c.example/)") == (
        '<p>a x <strong>y</strong> <a href="https://c.example/" rel="nofollow noopener">z</a></p>\n'
    )


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
