"""What the key page gives to be copied: files of the pages of /docs/examples/, so that there is one
of each, which is the one that its client was run with (`make test-clients`)."""

from typing import NamedTuple

from django.utils.translation import gettext as _

from inference.docs import markup, pages
from inference.docs.values import PLACEHOLDER as PLACEHOLDER
from inference.docs.values import Reading, values


class Source(NamedTuple):
    """A file of a page."""

    page: str
    file: str


class Example(NamedTuple):
    source: Source
    title: str
    about: str
    """The title of its page."""
    target: str
    """Where it goes."""
    code: str
    holds_key: bool
    """The others read it from NAN_API_KEY."""

    @property
    def id(self) -> str:
        return f"{self.source.page}-{self.source.file.partition('.')[0]}"


SOURCES = (
    Source("curl", "hello.sh"),
    Source("curl", "messages.sh"),
    Source("opencode-1", "opencode.json"),
    Source("claude-code", "settings.json"),
    Source("openai-python", "hello_openai.py"),
    Source("anthropic-sdk", "hello_anthropic.py"),
)


def filled(key: str, now: Reading) -> list[Example]:
    """With this key, once where it is shown, and with a placeholder after; with the gateway's
    address, the slot's name and what its model can take."""
    put_in = {**values(now), "key": key}
    return [_example(source, put_in) for source in SOURCES]


def _example(source: Source, put_in: dict[str, str]) -> Example:
    page = pages.load(pages.language())[source.page]
    code = markup.read_code(source.page, source.file)
    return Example(
        source=source,
        title=_title(source, page.title),
        about=page.title,
        target=dict(zip(page.files, page.targets, strict=True))[source.file],
        code=markup.fill_text(code, put_in).strip(),
        holds_key="{{ key }}" in code,
    )


def _title(source: Source, title: str) -> str:
    of_two = {
        "hello.sh": _("curl, OpenAI's dialect"),
        "messages.sh": _("curl, Anthropic's dialect"),
    }
    return of_two.get(source.file, title)
