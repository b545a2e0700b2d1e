"""What is known of a proposed model: looked up on the hub, or typed by an admin.

A proposal whose facts are due is the job; the beat takes it, and a worker that dies has only
delayed it.
"""

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from inference.fit import NOT_READ
from inference.fit.weights import count_bytes
from members.hub import Hub, HubProblem, Repository
from members.models import Proposal, User, Vote
from members.voting.refusals import Refused
from nan import stale

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

log = structlog.get_logger(__name__)

LEASE = timedelta(minutes=2)
BACK_OFF = (60, 300, 900, 3600, 6 * 3600)
"""Seconds until the next try while the hub does not answer; then it is left to an admin."""
CAPABILITIES = ("tools", "reasoning", "vision")
WEIGHTS = re.compile(r"\.(safetensors|bin|gguf|pt|pth)\Z")
BIGGEST = 2**53
BOUNDS = {
    "parameters": (10**6, 10**13),
    "active_parameters": (10**6, 10**13),
    "context": (128, 10**8),
    "weights_bytes": (2**20, 10**14),
}
"""Beyond these a figure is a slip: millions that were meant, or another unit."""
BYTES_EACH = (0.1, 16)
"""For a parameter: from less than two bits to twice eight bytes."""
NAMES: "dict[str, StrPromise]" = {
    "parameters": _("parameters"),
    "active_parameters": _("parameters used for each token"),
    "context": _("context"),
    "weights_bytes": _("size of the weights"),
    "licence": _("licence"),
    "revision": _("commit"),
    "config": _("config.json"),
    "capabilities": _("capabilities"),
    "languages": _("languages"),
}

ERRORS: "dict[str, StrPromise]" = {
    "hub_unreachable": _("The hub can't be reached; it is tried again."),
    "hub_odd": _("The hub's answer is not what we expect. An admin can type the facts."),
    "repo_missing": _("There is no such public repository on the hub."),
    "repo_gated": _("The repository asks for a consent first. An admin can type the facts."),
    "files_gated": _(
        "The repository asks for a consent before it shows its files. Accept its terms at the hub"
        " and set HF_TOKEN, or paste its config.json below."
    ),
    "token_refused": _("The hub does not accept our token: change HF_TOKEN, or take it away."),
}


def words(code: str) -> str:
    return str(ERRORS.get(code, code))


def names_of(facts: Iterable[str]) -> list[str]:
    return [str(NAMES.get(name, name)) for name in facts]


# -- Looking up ---------------------------------------------------------------------------------
def look_up_due(*, most: int = 1) -> int:
    """Few at a time: each may take as long as a task may."""
    due = Proposal.objects.facts_due().filter(facts_due_at__lte=timezone.now())
    rows = list(due.order_by("facts_due_at")[:most])
    return sum(look_up(proposal=row) for row in rows)


def look_up(*, proposal: Proposal) -> bool:
    """Asks the hub, if nobody else does at this moment."""
    claimed = Proposal.objects.filter(pk=proposal.pk, facts_due_at=proposal.facts_due_at).update(
        facts_due_at=timezone.now() + LEASE, facts_attempts=F("facts_attempts") + 1
    )
    if not claimed:
        return False
    try:
        with Hub(settings.HF_ENDPOINT, token=settings.HF_TOKEN) as hub:
            found = hub.repository(proposal.repo)
    except HubProblem as problem:
        _failed(proposal, problem)
    else:
        Proposal.objects.filter(pk=proposal.pk).update(
            looked_up=read(found), facts_state=Proposal.FactsState.KNOWN,
            facts_error="files_gated" if found.closed else "", facts_due_at=None,
        )  # fmt: skip
    proposal.refresh_from_db()
    return True


def _failed(proposal: Proposal, problem: HubProblem) -> None:
    """Transient ones are tried again a few times."""
    tried = proposal.facts_attempts
    again = not problem.permanent and tried < len(BACK_OFF)
    log.info("facts_failed", proposal=proposal.pk, code=problem.code, again=again)
    state = Proposal.FactsState.DUE if again else Proposal.FactsState.FAILED
    due = timezone.now() + timedelta(seconds=BACK_OFF[tried]) if again else None
    Proposal.objects.filter(pk=proposal.pk).update(
        facts_state=state, facts_error=problem.code, facts_due_at=due
    )


def ask_again(*, proposal: Proposal, actor: User | None) -> None:
    Proposal.objects.filter(pk=proposal.pk, state__in=Proposal.OPEN).update(
        facts_state=Proposal.FactsState.DUE, facts_due_at=timezone.now(), facts_attempts=0
    )


def read(found: Repository) -> dict[str, Any]:
    """The facts in a repository's own words; what it does not say is left out."""
    card = found.info.get("cardData")
    card = card if isinstance(card, dict) else {}
    text = found.config.get("text_config")
    text = text if isinstance(text, dict) else found.config
    facts = {
        "revision": found.revision,
        "config": found.config,
        "parameters": _parameters(found.info),
        "weights_bytes": _whole(_weights(found.info) or _counted(found.config), "weights_bytes"),
        "licence": _licence(card, found.info),
        "context": _whole(text.get("max_position_embeddings"), "context"),
        "languages": [str(one)[:20] for one in _several(card.get("language"))][:50],
        "capabilities": _capabilities(found),
        "gated": bool(found.info.get("gated")) or None,
    }
    return {name: value for name, value in facts.items() if value not in (None, "", [], {})}


def _parameters(info: dict[str, Any]) -> int | None:
    for kind in ("safetensors", "gguf"):
        held = info.get(kind)
        if isinstance(held, dict) and (total := _whole(held.get("total"), "parameters")):
            return total
    return None


def _weights(info: dict[str, Any]) -> int:
    """Of the safetensors alone where there are any: many repositories hold the weights twice."""
    files = [one for one in _several(info.get("siblings")) if isinstance(one, dict)]
    sizes = {str(one.get("rfilename")): _whole(one.get("size")) or 0 for one in files}
    tensors = sum(size for name, size in sizes.items() if name.endswith(".safetensors"))
    return tensors or sum(size for name, size in sizes.items() if WEIGHTS.search(name))


def _counted(config: dict[str, Any]) -> int | None:
    try:
        return count_bytes(config)
    except NOT_READ:
        return None


def _licence(card: dict[str, Any], info: dict[str, Any]) -> str:
    name = card.get("license_name") if card.get("license") == "other" else None
    found = name or next(iter(_several(card.get("license"))), "")
    tags = [str(tag) for tag in _several(info.get("tags"))]
    tagged = next((tag[8:] for tag in tags if tag.startswith("license:")), "")
    return str(found or tagged)[:60]


def _capabilities(found: Repository) -> list[str]:
    """A guess, which an admin can correct: the smoke test of the swap proves them."""
    template = found.template
    signs = {
        "tools": "tools" in template,
        "reasoning": "<think>" in template or "enable_thinking" in template
        or "reasoning" in template,
        "vision": bool(found.config.get("vision_config")),
    }  # fmt: skip
    return [name for name in CAPABILITIES if signs[name]]


def _several(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found] if found else []


def _whole(found: Any, name: str = "") -> int | None:
    """None for what is no possible figure of this name."""
    least, most = BOUNDS.get(name, (1, BIGGEST))
    possible = isinstance(found, int) and not isinstance(found, bool) and least <= found <= most
    return found if possible else None


# -- Typing -------------------------------------------------------------------------------------
NUMBERS = tuple(BOUNDS)
LISTS = ("capabilities", "languages")
TYPED = (*NUMBERS, "licence", "revision", "config", *LISTS)


def mark(proposal: Proposal) -> str:
    """Of what the form of its facts shows."""
    return stale.digest(proposal, ("looked_up", "typed"))


@transaction.atomic
def type_in(
    *, proposal: Proposal, actor: User | None, seen: str | None = None, **values: Any
) -> Proposal:
    """What is typed stands over what was looked up; None or empty gives the latter back. `seen`:
    the mark of the form that was filled in; None: who asks says nothing about it."""
    if not set(values) <= set(TYPED) or not all(_possible(*item) for item in values.items()):
        raise Refused("bad_fact")
    row = Proposal.objects.select_for_update(of=("self",)).get(pk=proposal.pk)
    typed = {**row.typed, **values}
    typed = {name: value for name, value in typed.items() if value not in (None, "", [], {})}
    if seen not in (None, mark(row)) and typed != row.typed:
        raise Refused("facts_changed")
    if odd := disagreement(row.looked_up, typed):
        raise Refused(odd[1])
    open_now = Proposal.objects.filter(pk=proposal.pk, state__in=Proposal.OPEN)
    if not open_now.exclude(candidates__vote__state=Vote.State.OPEN).update(typed=typed):
        raise Refused("fixed" if open_now.exists() else "decided")
    log.info("facts_typed", proposal=proposal.pk, actor=actor and str(actor.public_id))
    proposal.refresh_from_db()
    return proposal


def disagreement(looked_up: dict[str, Any], typed: dict[str, Any]) -> tuple[str, str] | None:
    """The name of a typed figure that can't be true beside the others, and the refusal's code. What
    a hub says of itself is left: a repository may hold its weights several times."""
    facts = {**looked_up, **typed}
    total, active, weights = (
        facts.get(name) for name in ("parameters", "active_parameters", "weights_bytes")
    )
    if total and active and active > total and typed.keys() & {"parameters", "active_parameters"}:
        return "active_parameters", "active_more"
    if total and weights and typed.keys() & {"parameters", "weights_bytes"}:
        least, most = BYTES_EACH
        if not least <= weights / total <= most:
            return "weights_bytes", "weights_odd"
    return None


def _possible(name: str, value: Any) -> bool:
    if value in (None, "", [], {}):
        return True
    if name in NUMBERS:
        return _whole(value, name) is not None
    if name == "capabilities":
        return isinstance(value, list) and set(value) <= set(CAPABILITIES)
    if name == "languages":
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if name == "revision":
        return isinstance(value, str) and bool(re.fullmatch(r"[0-9a-f]{40}", value))
    return isinstance(value, dict) if name == "config" else isinstance(value, str)
