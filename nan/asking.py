"""How a page asks for something: the use case is called, and its refusal is told in words."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest


def attempt(
    request: HttpRequest,
    action: Callable[[], Any],
    done: str,
    *,
    already: str = "",
    refusals: type[Exception] | tuple[type[Exception], ...],
    words: Callable[[Any], object] = str,
) -> bool:
    """Says what came of it; False if it was refused. `already`: what is so where the action answers
    that there was nothing left to do, as on a second click."""
    try:
        changed = action()
    except refusals as refusal:
        messages.error(request, str(words(refusal)))
        return False
    if changed is False and already:
        messages.info(request, already)
    else:
        messages.success(request, done)
    return True
