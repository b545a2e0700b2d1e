"""What an admin's button on a swap's page leads to: the use case, and a sentence that is true then.

A second click finds its own first one, and what has gone on meanwhile is named: nothing that was
pressed goes without an answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inference.fleet.words import words
from inference.models import Swap, SwapState
from inference.swaps import plan as swaps
from inference.swaps.plan import SwapRefused

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


@dataclass(frozen=True, kw_only=True)
class Act:
    use_case: Callable[..., object]
    done: "StrPromise"
    already: Callable[[Swap, Any], bool]
    was: "StrPromise"
    """What is so where `already` holds."""


ACTS: Mapping[str, Act] = {
    "approve": Act(
        use_case=swaps.approve,
        done=gettext_lazy("You have approved it."),
        already=lambda swap, person: swap.approved_by_id == person.pk,
        was=gettext_lazy("You had approved it already."),
    ),
    "start": Act(
        use_case=swaps.start_now,
        done=gettext_lazy("It starts now."),
        already=lambda swap, _person: going_on(swap),
        was=gettext_lazy("It has started already."),
    ),
    "cancel": Act(
        use_case=swaps.cancel,
        done=gettext_lazy("You have cancelled it."),
        already=lambda swap, _person: swap.state == SwapState.CANCELLED,
        was=gettext_lazy("It was cancelled already."),
    ),
    "pause": Act(
        use_case=swaps.pause,
        done=gettext_lazy("Told to pause. The replica under way is finished first."),
        already=lambda swap, _person: going_on(swap) and swap.paused_at is not None,
        was=gettext_lazy("It is paused already."),
    ),
    "resume": Act(
        use_case=swaps.resume,
        done=gettext_lazy("It goes on."),
        already=lambda swap, _person: going_on(swap) and swap.paused_at is None,
        was=gettext_lazy("It is not paused: it goes on already."),
    ),
    "abort": Act(
        use_case=swaps.abort,
        done=gettext_lazy("Told to abort. What was changed goes back to the old model."),
        already=lambda swap, _person: swap.abort_asked and swap.is_open,
        was=gettext_lazy("It was told to abort already."),
    ),
}
NOW: "Mapping[str, StrPromise]" = {
    SwapState.PLANNED: gettext_lazy("It waits for approval."),
    SwapState.APPROVED: gettext_lazy("It is approved and has not begun."),
    SwapState.RUNNING: gettext_lazy("It is running."),
    SwapState.RETURNING: gettext_lazy("It is going back to the old model."),
    SwapState.DONE: gettext_lazy("It is done."),
    SwapState.FAILED: gettext_lazy("It has failed."),
    SwapState.ABORTED: gettext_lazy("It has been aborted."),
    SwapState.CANCELLED: gettext_lazy("It has been cancelled."),
}


def going_on(swap: Swap) -> bool:
    return bool(swap.state == SwapState.RUNNING and not swap.abort_asked)


def do(request: HttpRequest, act: Act, swap: Swap) -> None:
    try:
        act.use_case(swap=swap, actor=request.user)
    except SwapRefused as refusal:
        swap.refresh_from_db()
        if act.already(swap, request.user):
            messages.info(request, str(act.was))
        else:
            messages.error(request, refused(refusal, swap))
    else:
        messages.success(request, str(act.done))


def refused(refusal: SwapRefused, swap: Swap) -> str:
    """Why not; where the swap has gone on, what it does now."""
    if refusal.code != "not_now":
        return str(words(refusal.code))
    now = NOW[SwapState(swap.state)]
    if swap.state == SwapState.RUNNING and swap.abort_asked:
        now = NOW[SwapState.RETURNING]
    return _("Nothing was done: the swap has changed meanwhile. %(now)s") % {"now": now}
