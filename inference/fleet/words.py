"""Every code of the fleet as one plain sentence for admins: what happened and what to look at."""

from typing import TYPE_CHECKING

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from inference.fleet.errors import FleetRefused
from inference.probes.words import OPERATORS as PROBE_WORDS
from inference.smoke.words import WORDS as SMOKE_WORDS

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

REFUSALS = {
    "pool_full": _("The slot has no place left: a slot holds 32 replicas."),
    "port_in_use": _("Another replica of this server has that port."),
    "gpu_unknown": _("The server has not reported such a GPU."),
    "gpu_in_use": _("Another replica has one of these GPUs."),
    "slot_empty": _("The slot has no model yet. Choose the one that it begins with."),
    "other_model": _("The slot serves another model. Plan a swap to change it."),
    "other_kind": _("The model is of another kind than the slot."),
    "gpus_differ": _("The model needs another number of GPUs than this replica has."),
    "not_failed": _("The replica is not down, so there is nothing to try again."),
    "still_running": _("Take the replica out first, and wait until it is off."),
    "last_replica": _(
        "Nothing was done: no other replica of the slot would go on serving, so members would get"
        " errors until one does. Confirm it to do it all the same (by command: --last)."
    ),
    "last_of_slots": _(
        "Nothing was done: a slot would be left with no replica that serves, so members would get"
        " errors there. Confirm it to do it all the same (by command: --last)."
    ),
    "replica_gone": _("This replica has been removed meanwhile. Nothing was changed."),
    "server_gone": _("This server has been deleted meanwhile. Nothing was changed."),
    "server_has_replicas": _(
        "Replicas stand on this server. Take them out and remove them first; then it can be"
        " deleted."
    ),
    "server_reports": _(
        "This server has joined and reports, so it needs no token. To set up its host again,"
        " delete it and add it anew."
    ),
    "slot_in_a_swap": _(
        "A swap is changing this slot. Put the replica in service when the swap is over: it would"
        " be left on the old model."
    ),
    "in_a_swap": _("A swap is changing this replica. Abort the swap, or wait until it is over."),
    "name_of_other_slot": _("Another slot answers to this name. Rename the slot or the model."),
    "name_taken": _(
        "There is a server of this name already. Its own page makes another token for it."
    ),
    "token_unknown": _("This token is unknown, used or older than a day. Ask for a new one."),
    "no_redis_for_servers": _(
        "GPU_REDIS_URL or ENGINE_API_KEY is not set for the web, so no server can be told."
    ),
    "address_refused": _("A server's address must be on loopback or a private network."),
    "too_many": _("Too many attempts. Wait a minute; the token was not used."),
    "unreadable": _("The request was not understood. Are both sides of the same version?"),
    "same_model": _("The slot serves this model already."),
    "vote_open": _(
        "Members are voting about this slot: their ballots compare with the model that runs. Wait"
        " until the vote has closed."
    ),
    "slot_busy": _("Another swap of this slot is open. Finish or cancel it first."),
    "no_replicas": _("No replica of this slot is in service."),
    "not_offered": _("This model is no longer offered."),
    "plan_outdated": _(
        "Replicas of the slot were put in or taken out after the swap had been planned. Plan it"
        " again."
    ),
    "not_now": _("The swap's state has changed meanwhile. Look at it again."),
    "second_admin": _("Somebody else has to approve a swap than the one who planned it."),
    "swap_too_late": _("A swap starts within a year from now. Choose an earlier time."),
    "in_the_past": _("That time is over. Choose a later one, or none to begin on approval."),
}
CAUSES = {
    "load_too_long": _("The engine was not ready within the time that its model allows."),
    "memory_held": _(
        "The GPU's memory was not given back after the engine had ended. Something that is not"
        " ours, or a process that was left behind, holds it: look at the server."
    ),
    "spec_refused": _("The model's entry in the catalogue has a setting that is not allowed."),
    "engine_died": _("The engine ended by itself."),
    "engine_lost": _("The server no longer knows this engine; it was probably restarted."),
    "smoke_too_long": _("The smoke test did not end within ten minutes."),
    "pool_unproven": _("The pool's own health checks did not pass within 90 seconds."),
    "drain_deadline": _("Requests were still running when the time to drain was over."),
    "preflight_timeout": _("The server did not finish the checks before the start."),
    "weights_missing": _("The weights are not on the server at the pinned commit. Fetch them."),
    "disk_short": _("The server's disk has too little room for the weights."),
    "gpu_missing": _("The server has not the GPUs that the replica needs."),
    "gpu_memory": _("The GPU's memory is too small or held by something else."),
    "port_taken": _("Another program listens at the replica's port."),
    "flag_refused": _("This version of the engine does not know one of the model's flags."),
    "flag_value": _("The engine refuses the value of one of the model's flags."),
    "parser_unknown": _("The engine does not know the model's tool or reasoning parser."),
    "template_bad": _("The model's chat template can't be used."),
    "speculative_bad": _("The engine refuses the settings of speculative decoding."),
    "context_too_long": _("The context is longer than the model's own."),
    "engine_missing": _("The engine is not installed on the server."),
    "kv_cache_too_small": _("What the weights leave of the memory does not hold one full context."),
    "does_not_fit": _("By the estimate the model does not fit on the GPUs of a replica."),
    "context_too_short": _("The model's context is shorter than the slot must carry."),
    "killed": _("The engine was killed from outside."),
    "died": _("The engine ended by itself."),
    "capacity": _("By the estimate it would carry fewer requests at once than the slot must."),
    "capacity_measured": _(
        "By what its engines have measured it carries fewer requests at once than the slot must."
    ),
    "driver_failed": _(
        "The server's driver (systemd, Compose) could not start or stop the engine."
    ),
    "host_restarted": _("The server was restarted."),
    "worker_killed": _("The server's worker died while it was starting the engine."),
    "stopped_before_start": _("It was to be stopped before it had been started."),
    "environment_refused": _("The model's entry sets an environment variable that is not allowed."),
    "host_refused": _("The engine was to listen at an address that is not the server's own."),
    "spec_unreadable": _("The server could not read what it was to start. Is its version older?"),
    "check_broken_off": _("The check before the start was broken off on the server."),
    "check_timeout": _("The check before the start did not end in time on the server."),
    "check_failed": _("The check before the start failed by itself. Read the worker's log there."),
    "fetch_broken_off": _("Fetching the weights was broken off. Ask for it again: it goes on."),
    "fetch_failed": _("Fetching the weights failed. Ask for it again, or read the worker's log."),
    "repo_missing": _("The hub has no such repository, or it is private."),
    "revision_missing": _("The repository has no such commit."),
    "repo_gated": _("The repository is gated: accept its licence at the hub, and set HF_TOKEN."),
    "hub_unreachable": _("The hub can't be reached from the server."),
    "run_ended": _("Its machine's stack was stopped, and the engine with it."),
    "internal": _("A fault of ours. Read the fleet worker's log."),
}
STATES = {
    "server_silent": _("A server has not reported for more than 30 seconds."),
    "server_busy": _("Another swap is changing one of its servers."),
    "others_not_serving": _("Another replica of the slot is not serving; it is waited for."),
    "pool_unreachable": _("The pool's socket can't be reached: is HAProxy running?"),
    "replica_down": _("A replica is down and out of the pool."),
    "replica_bad": _("A replica answered badly and was taken out of the pool."),
    "last_replica_bad": _("A replica answers badly and stays: without it too few would serve."),
    "api_down": _("Requests are not answered: every caller of the API gets an error."),
    "api_gateway": _("The gateway does not answer: is LiteLLM running?"),
    "api_edge": _("Nobody answers at the API's address: is HAProxy running, and reached by it?"),
    "api_keys": _("The gateway answers but can't check keys: is its database there?"),
    "slot_down": _("A slot's model is down: the pool has no engine in service for it."),
    "swap_failed": _("A swap failed; the old model serves again where nothing else is said."),
    "probe_failed": _("A call that examples depend on does not work as a member would make it."),
    "probe_run_failed": _("The calls that examples depend on could not be checked."),
    "not_restored": _("A replica was left on the new model: it is the only one that serves."),
}
NAMING: "dict[str, StrPromise]" = {
    "gpus_differ": _(
        "%(model)s needs another number of GPUs than this replica has: %(needed)s, and not"
        " %(there)s."
    ),
}
"""Of refusals that name what they are about."""
WORDS: "dict[str, StrPromise | Promise]" = {
    **REFUSALS,
    **CAUSES,
    **STATES,
    **SMOKE_WORDS,
    **PROBE_WORDS,
}
UNKNOWN = _("Something went wrong that has no words yet. Read the fleet worker's log.")


REFUSED_FIELD = _("The model's entry in the catalogue has a value that no server takes.")


def words(code: str) -> "StrPromise | Promise":
    return WORDS.get(code, REFUSED_FIELD if code.endswith("_refused") else UNKNOWN)


def said(refusal: FleetRefused) -> str:
    """With what the refusal names, if it names something."""
    if refusal.named and refusal.code in NAMING:
        return str(NAMING[refusal.code]) % refusal.named
    return str(words(refusal.code))
