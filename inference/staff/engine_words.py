"""What the phases of an engine's start and its checks are called on pages."""

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

from inference.models import Replica, Swap

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

# As inference/gpu/logtail.py reads them from the log.
PHASES: "dict[str, StrPromise]" = {
    "starting": pgettext_lazy("phase", "starting"),
    "loading weights": pgettext_lazy("phase", "loading weights"),
    "compiling": pgettext_lazy("phase", "compiling"),
    "sizing the KV cache": pgettext_lazy("phase", "sizing the KV cache"),
    "capturing graphs": pgettext_lazy("phase", "capturing graphs"),
    "starting to serve": pgettext_lazy("phase", "starting to serve"),
    "serving": pgettext_lazy("phase", "serving"),
}
CHECKS: "dict[str, StrPromise]" = {
    # Before anything is touched
    "weights": pgettext_lazy("check", "weights"),
    "disk": pgettext_lazy("check", "disk"),
    "memory": pgettext_lazy("check", "GPU memory"),
    "port": pgettext_lazy("check", "port"),
    "flags": pgettext_lazy("check", "flags"),
    "parsers": pgettext_lazy("check", "parsers"),
    "template": pgettext_lazy("check", "chat template"),
    "context": pgettext_lazy("check", "context"),
    "capacity": pgettext_lazy("check", "room for requests"),
    # The smoke test
    "health": pgettext_lazy("check", "health"),
    "names": pgettext_lazy("check", "model names"),
    "chat": pgettext_lazy("check", "chat"),
    "stream": pgettext_lazy("check", "chat, streamed"),
    "reasoning": pgettext_lazy("check", "reasoning"),
    "reasoning_stream": pgettext_lazy("check", "reasoning, streamed"),
    "thinking_off": pgettext_lazy("check", "reasoning turned off"),
    "tools": pgettext_lazy("check", "tools"),
    "tools_stream": pgettext_lazy("check", "tools, streamed"),
    "message": pgettext_lazy("check", "Messages API"),
    "messages": pgettext_lazy("check", "Messages API, streamed"),
    "messages_tools": pgettext_lazy("check", "Messages API, tools"),
    "responses": pgettext_lazy("check", "Responses API"),
    "responses_stream": pgettext_lazy("check", "Responses API, streamed"),
    "responses_tools": pgettext_lazy("check", "Responses API, tools"),
    "vision": pgettext_lazy("check", "vision"),
    "long_context": pgettext_lazy("check", "long context"),
    "embedding": pgettext_lazy("check", "embedding"),
    "speculative": pgettext_lazy("check", "speculative decoding"),
}


def error_said(found: Swap | Replica) -> str:
    """What stands under the sentence of a cause: an engine's own words, or the number in it."""
    detail = str(found.error_detail)
    if found.error_code != "drain_deadline" or not detail.isdigit():
        return detail
    return _("Requests: %(count)s") % {"count": detail}


def phase(name: str) -> str:
    return str(PHASES.get(name, name))


def check(name: str) -> str:
    """One that an engine names itself (inference/simulator/check.py) may be unknown here."""
    return str(CHECKS.get(name, name))
