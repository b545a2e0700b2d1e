"""Every error code of keys, with the words for the member and the words for the operator.

Members are told what happened, what was kept and what to do; operators what to look at. The two
never mix: what an operator reads may name hosts and settings.
"""

from typing import TYPE_CHECKING, NamedTuple

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


class Words(NamedTuple):
    member: "StrPromise"
    operator: "StrPromise"


TRY_AGAIN = _("The gateway does not answer right now. We keep trying; you need not do anything.")

WORDS = {
    "unreachable": Words(TRY_AGAIN, _("No connection to GATEWAY_URL. Is the gateway running?")),
    "timeout": Words(TRY_AGAIN, _("The gateway took longer than 8 seconds to answer.")),
    "broken_off": Words(TRY_AGAIN, _("The gateway closed the connection before it answered.")),
    "server_error": Words(TRY_AGAIN, _("The gateway answered 5xx or 429. Read its log.")),
    "unreadable": Words(
        TRY_AGAIN, _("The gateway's answer was not understood. Was its version changed?")
    ),
    "not_admitted": Words(
        TRY_AGAIN,
        _(
            "The gateway answered 401 or 403. Does LITELLM_MASTER_KEY match, and has its"
            " database connections left?"
        ),
    ),
    "not_accepted": Words(
        TRY_AGAIN, _("The gateway made a key and then did not accept it. It was removed.")
    ),
    "alias_taken": Words(TRY_AGAIN, _("An earlier attempt's key is still there; removing it.")),
    "internal": Words(TRY_AGAIN, _("A fault of ours. Read the gateway worker's log.")),
    "reveal_unavailable": Words(
        _("We can't hand a key over right now. We keep trying; you need not do anything."),
        _("Redis is away, so a new key can't be handed to its member."),
    ),
    "refused": Words(
        _("The gateway refused to make this key. Please try again; if it persists, tell an admin."),
        _("The gateway answered 4xx to a creation. Do the limits and routes make sense to it?"),
    ),
    "name_taken": Words(
        TRY_AGAIN,
        _(
            "Somebody else's entry in the gateway's model list has this name: of its configuration"
            " file, or made by hand. Remove it, and ours follows by itself."
        ),
    ),
    "lost": Words(
        _(
            "The gateway no longer has this key, so it stopped working. Nothing else was lost:"
            " make a new one."
        ),
        _("An active key was missing at the gateway: deleted there, or an older backup restored."),
    ),
    "held": Words(
        _("An admin has stopped your keys. Write to the admins if you don't know why."),
        _("The member is suspended."),
    ),
    "too_many": Words(
        _("You have made many keys today. Please wait until tomorrow, or ask an admin."),
        _("The member reached the daily number of new keys."),
    ),
    "nothing_to_rotate": Words(
        _("There is no working key to replace. Make one first."),
        _("The member has no working key."),
    ),
    "rotation_under_way": Words(
        _("A replacement is already under way: your old key still works until it ends."),
        _("The member's outgoing key is still there."),
    ),
    "paused": Words(
        _("Your key is paused. Resume it first, or replace it at once."),
        _("The member's key is paused."),
    ),
}
UNKNOWN = Words(
    _("Something went wrong on our side. Please try again."), _("A code that the catalogue lacks.")
)


def words(code: str) -> Words:
    return WORDS.get(code, UNKNOWN)
