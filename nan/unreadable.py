"""Input that no page can use: bytes, ids and JSON, refused in one way everywhere."""

import json
import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from django import forms
from django.forms.fields import InvalidJSONInput
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.translation import gettext as _
from django.views.defaults import bad_request

BIGGEST_ID = 2**63 - 1
DEEPEST = 40
"""Lists and objects inside each other. Postgres, Python and templates give up at some hundreds."""
MOST_DIGITS = 40
"""Python makes no integer of more than 4,300 digits; nothing that is counted here has forty."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class NoNulMiddleware:
    """Postgres stores no NUL. In an address, or in a field's name, it is answered with 400; from
    what somebody typed or pasted into a form, where it can't be seen, it is taken out."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if _has_nul(request):
            return HttpResponse(bad_request(request, ValueError()).content, status=400)
        if any("\0" in value for _name, values in request.POST.lists() for value in values):
            sent = request.POST
            request.POST = QueryDict(_without_nul(sent), encoding=sent.encoding)
        return self.get_response(request)


def _has_nul(request: HttpRequest) -> bool:
    names = (name for sent in (request.GET, request.POST) for name in sent)
    values = (value for _name, found in request.GET.lists() for value in found)
    return any("\0" in text for text in (request.path, *names, *values))


def _without_nul(sent: QueryDict) -> str:
    clean = QueryDict(mutable=True, encoding=sent.encoding)
    for name, values in sent.lists():
        clean.setlist(name, [value.replace("\0", "") for value in values])
    return clean.urlencode()


def number(text: str) -> int | None:
    """An id as somebody typed it; None for what can be no id."""
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        return None
    value = int(text)
    return value if value <= BIGGEST_ID else None


def read_json(text: str | bytes, *, odd_numbers: Literal["refuse", "null"] = "refuse") -> Any:
    """JSON from a stranger; ValueError for all that can't be kept in a row or shown again.

    That is, besides what is no JSON: NaN and infinite numbers, too many digits, too deep, text
    with NUL or half a surrogate pair. With `odd_numbers="null"` numbers that are not finite are
    read as null: Python's own writer leaves them in published files.
    """
    odd = _refused_number if odd_numbers == "refuse" else _no_number
    try:
        found = json.loads(
            text, parse_int=_whole, parse_float=partial(_finite, odd=odd), parse_constant=odd
        )
    except RecursionError:
        raise ValueError("too deep") from None
    _check_storable(found)
    return found


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError("a number has too many digits")
    return int(digits)


def _finite(digits: str, *, odd: Callable[[str], Any]) -> Any:
    value = float(digits)
    return value if math.isfinite(value) else odd(digits)


def _refused_number(word: str) -> Any:
    raise ValueError(f"{word[:MOST_DIGITS]} is no number that can be kept")


def _no_number(word: str) -> Any:
    return None


def _check_storable(found: Any) -> None:
    """Without recursion: what is checked may be as deep as the parser went."""
    left = [(found, 1)]
    while left:
        value, depth = left.pop()
        if depth > DEEPEST:
            raise ValueError("too deep")
        if isinstance(value, dict):
            left += [(key, depth) for key in value]
            left += [(inner, depth + 1) for inner in value.values()]
        elif isinstance(value, list):
            left += [(inner, depth + 1) for inner in value]
        elif isinstance(value, str) and ("\0" in value or _SURROGATE.search(value)):
            raise ValueError("text holds a character that can't be stored")


class PastedJSON(forms.JSONField):
    """A field for JSON that a person pastes. Refused, it shows again what was typed."""

    def to_python(self, value: Any) -> Any:
        if self.disabled or not isinstance(value, str) or value in self.empty_values:
            return super().to_python(value)
        try:
            return read_json(value)
        except json.JSONDecodeError:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from None
        except ValueError:
            raise forms.ValidationError(
                _(
                    "Something in this JSON can't be stored: NaN or a number without end, text"
                    " with NUL or half a character, or too many brackets inside each other."
                    " Nothing was saved."
                ),
                code="unstorable",
            ) from None

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Django's own reads it once more, with a parser that fails on some of it."""
        if self.disabled or data is None:
            return super().bound_data(data, initial)
        try:
            return read_json(data)
        except ValueError:
            return InvalidJSONInput(data)
