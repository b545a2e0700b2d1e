"""Why a probe failed, in a few words for members; and what only admins read."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

OPERATORS: dict[str, Promise] = {
    "probe_no_key": _("The gateway made no key for the probes. Do members get theirs?"),
    "probe_too_many_keys": _("The probes have had as many keys today as anyone may."),
    "probe_key_unreadable": _(
        "The probes' key could not be opened: was Redis away, or SECRET_KEY changed meanwhile?"
    ),
    "probe_too_long": _("The calls did not end in nine minutes."),
    "probe_model_changed": _("The slot's model changed while it was being checked."),
    "probe_model_away": _("No engine answered for the slot's model while it was being checked."),
    "probe_asked_already": _("The calls are being made already. Wait until this run has ended."),
    "probe_nothing_answers": _(
        "No model answers that could be checked: each slot is taken out, down, or in a swap."
    ),
    "probe_slot_taken": _("A call that was left in the middle keeps its place in parallel."),
    "probe_limited": _("The call was refused by the probes' own limits."),
    "probe_count": _("Counting the tokens of a message gave no number."),
}

_SILENT = _("no answer in time")
_BROKEN = _("the answer breaks off")
_ERROR = _("an error in place of an answer")
_TOOLS = _("tool calls get lost or come broken")
_THOUGHTS = _("thoughts are not kept apart from the answer")
MEMBERS: dict[str, Promise] = {
    "smoke_hang": _SILENT,
    "smoke_stream_hang": _SILENT,
    "smoke_slow": _("the first word comes too late"),
    "smoke_stalled": _BROKEN,
    "smoke_half_stream": _BROKEN,
    "smoke_broken_off": _BROKEN,
    "smoke_unreachable": _ERROR,
    "smoke_not_admitted": _ERROR,
    "smoke_refused": _ERROR,
    "smoke_server_error": _ERROR,
    "smoke_unreadable": _("the answer has another shape than this API's"),
    "smoke_name_unknown": _("the API does not know this model or call"),
    "smoke_wrong_model": _("another model answers"),
    "smoke_empty": _("the answer is empty"),
    "smoke_think_in_content": _THOUGHTS,
    "smoke_reasoning_missing": _THOUGHTS,
    "smoke_tool_call_lost": _TOOLS,
    "smoke_tool_arguments": _TOOLS,
    "smoke_finish": _("the answer does not say why it ended"),
    "smoke_usage": _("the answer does not say how many tokens it used"),
    "smoke_events": _("the events of a stream come in a wrong order"),
    "smoke_vision": _("a picture was not recognised"),
    "smoke_context": _("the context is shorter than it should be"),
    "smoke_long_context": _("a line in a long prompt was not found"),
    "smoke_embedding": _("the vectors can't be used"),
    "probe_slot_taken": _("a call that was left in the middle keeps its place"),
    "probe_limited": _("it could not be checked within the limits"),
    "probe_count": _("no count of tokens"),
}
UNKNOWN = _("it does not answer as it should")


def for_members(code: str) -> Promise:
    return MEMBERS.get(code, UNKNOWN)
