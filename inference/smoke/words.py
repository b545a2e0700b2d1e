"""What a failed check or a watcher's verdict means, for the people who run the servers.

Shown beside the check's name and its detail (figures); each says what happened and where to look.
"""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

WORDS: dict[str, Promise] = {
    "smoke_unhealthy": _("The engine does not report itself healthy."),
    "smoke_unreachable": _("The engine cannot be reached at its address."),
    "smoke_not_admitted": _("The engine refused our key."),
    "smoke_name_unknown": _("The engine does not answer under every name it was given."),
    "smoke_wrong_model": _("The answer names a model that this engine should not be serving."),
    "smoke_hang": _("The engine says it is healthy, but a request got no answer."),
    "smoke_stream_hang": _(
        "A streamed request stayed silent, although plain ones may be answered."
    ),
    "smoke_slow": _("The first token came too late."),
    "smoke_stalled": _("A stream began and then stopped without ending."),
    "smoke_half_stream": _("A stream ended in its middle, without a finish."),
    "smoke_broken_off": _("The engine broke the connection off before it had answered."),
    "smoke_unreadable": _("The answer is not what this API answers. Does another program listen?"),
    "smoke_refused": _("The engine refused a valid request."),
    "smoke_server_error": _("The engine answered with an error of its own. See its log."),
    "smoke_empty": _("The request succeeded, but the answer is empty."),
    "smoke_think_in_content": _(
        "Thoughts arrive inside the answer's text. The reasoning parser is missing or does not "
        "fit this model."
    ),
    "smoke_reasoning_missing": _(
        "The model is listed as reasoning, but no thoughts arrive in their own field. "
        "Is the reasoning parser set?"
    ),
    "smoke_thinks_anyway": _(
        "Asked not to think, the model did so all the same, or its answer was taken for thoughts. "
        "The reasoning parser or the chat template does not fit this model."
    ),
    "smoke_tool_call_lost": _(
        "Asked to use a tool, the model made no tool call. The tool parser or the chat template "
        "does not fit this model."
    ),
    "smoke_tool_arguments": _("The arguments of a tool call are not the JSON that was asked for."),
    "smoke_finish": _("The answer ended without a valid finish reason."),
    "smoke_usage": _("The answer does not say how many tokens it used, so usage can't be counted."),
    "smoke_events": _("The events of a stream come in an order that clients cannot read."),
    "smoke_vision": _("The model is listed as seeing pictures, but did not recognise one."),
    "smoke_context": _("The engine was started for a shorter context than the catalogue promises."),
    "smoke_long_context": _("The model did not find a line in a long prompt."),
    "smoke_embedding": _("The embeddings are not usable vectors."),
    "smoke_speculative": _(
        "Speculative decoding is configured, but no drafted token was accepted. "
        "The draft weights may not be loaded."
    ),
    "watch_hang": _("The engine says it is healthy, but answers nothing any more."),
    "watch_unreachable": _("The engine cannot be reached any more."),
    "watch_failing": _("The engine answers our small requests with errors."),
    "watch_errors": _("Many requests end with an error of the engine."),
    "watch_slow": _("The engine has become much slower than it was, without more to do."),
    "watch_behind": _("First tokens come far later than from the slot's other replicas."),
    "watch_busy": _("The engine is so busy that a small request waits long."),
}
