"""One day's figures as the gateway has them, whole and each call once."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

from inference.gateway import Gateway, GatewayUnavailable

ATTEMPTS = 3


class Counted(NamedTuple):
    """In the order of the fields that `inference.usage.pull` writes."""

    requests: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


Activity = dict[tuple[str, str], Counted]
"""By the gateway's id of the key and the public name that was called."""


class Moving(GatewayUnavailable):
    """Rows came in between the pages each time; a later reading will be whole."""

    def __init__(self) -> None:
        super().__init__("moving", maybe_done=False)


def read_keys(client: Gateway, day: date, tokens: Iterable[str]) -> Activity:
    """Of these keys only: each is a call, and takes the gateway as long as some forty rows."""
    found: Activity = {}
    for token in tokens:
        found |= read_day(client, day, token)
    return found


def read_day(client: Gateway, day: date, token: str = "") -> Activity:
    """All keys, or one. A key with several routes, or one split over two pages, is added up.

    With several pages, a row that comes in meanwhile pushes others over to the next page, where
    they would count again. It pushes the last page too, so that one is read before and after all
    of the others: if it holds the same rows, nothing came in.
    """
    for _attempt in range(ATTEMPTS):
        first, pages = client.activity(day, 1, token)
        if pages == 1:
            return _sum([first])
        before, _pages = client.activity(day, pages, token)
        others = [client.activity(day, number, token)[0] for number in range(1, pages)]
        after, pages_after = client.activity(day, pages, token)
        if pages_after == pages and _rows(before) == _rows(after):
            return _sum([*others, after])
    raise Moving


def _rows(page: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    """Which rows a page holds, as far as it tells them apart: not what they count."""
    return {
        (kind, name, token)
        for kind in ("model_groups", "endpoints")
        for name, group in page.get(kind, {}).items()
        for token in group["api_key_breakdown"]
    }


def _sum(pages: list[dict[str, Any]]) -> Activity:
    total: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * len(Counted._fields))
    try:
        for page in pages:
            for place, counted in _entries(page):
                total[place] = [a + b for a, b in zip(total[place], counted, strict=True)]
    except (KeyError, TypeError, AttributeError):
        raise GatewayUnavailable("unreadable", maybe_done=False) from None
    return {place: Counted(*figures) for place, figures in total.items()}


def _entries(page: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], Counted]]:
    for model, group in page.get("model_groups", {}).items():
        for token, entry in group["api_key_breakdown"].items():
            figures = entry["metrics"]
            yield (
                (token, model),
                Counted(
                    figures["api_requests"],
                    figures["prompt_tokens"],
                    figures["completion_tokens"],
                    figures["cache_read_input_tokens"],
                ),
            )
