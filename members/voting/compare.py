"""What is said of each option, beside the model that runs now.

Computed anew until the vote opens; then copied to the ballot, where it stays as it was.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inference.fit.weights import active_bytes
from inference.models import CatalogModel, Slot
from inference.names.changes import CAPABILITIES
from inference.swaps.prospects import CONTEXTS, prospects
from members.models import Candidate, Proposal, Vote
from members.models.votes import KEEP
from members.voting import languages, licences
from members.voting.refusals import Refused

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

Facts = dict[str, Any]
MIB = 2**20
SHORT, LONG = CONTEXTS
FASTER, SLOWER = 0.75, 1.33
"""Share of bytes read for each token, against the current model: within, it is about as fast."""
SPEED: "dict[str, StrPromise]" = {
    "faster": gettext_lazy("Faster than the current model, by an estimate."),
    "similar": gettext_lazy("About as fast as the current model, by an estimate."),
    "slower": gettext_lazy("Slower than the current model, by an estimate."),
    "": gettext_lazy("Nothing can be said about its speed."),
}


@dataclass(frozen=True, kw_only=True)
class ServerFit:
    server: str
    gpus: int
    replicas: int
    fits: bool | None
    at_32k: int | None
    """Members at once with a request of 32k tokens each; None: nothing can be said."""
    at_128k: int | None
    notes: tuple[str, ...] = ()

    @property
    def notes_words(self) -> list[str]:
        return [_(note) for note in self.notes]


@dataclass(frozen=True, kw_only=True)
class Look:
    """The computed part of a card, and what the ballot keeps of it."""

    gained: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    languages_gained: list[str] = field(default_factory=list)
    languages_lost: list[str] = field(default_factory=list)
    """Codes; both empty where one of the two models does not say which it speaks."""
    context_before: int = 0
    context_after: int = 0
    speed: str = ""
    fits: list[ServerFit] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> "Look":
        fits = [ServerFit(**{**fit, "notes": tuple(fit["notes"])}) for fit in kept["fits"]]
        return cls(**{**kept, "fits": fits})


@dataclass(frozen=True, kw_only=True)
class Card:
    code: str
    title: str
    repo: str
    is_current: bool
    facts: Facts
    look: Look
    proposal: Proposal | None = None

    @property
    def licence_words(self) -> str:
        return licences.words(str(self.facts.get("licence", "")))

    @property
    def speed_words(self) -> str:
        return str(SPEED[self.look.speed])

    @property
    def gained_words(self) -> list[str]:
        return [
            *capability_words(self.look.gained),
            *languages.words(self.look.languages_gained),
        ]

    @property
    def lost_words(self) -> list[str]:
        return [*capability_words(self.look.lost), *languages.words(self.look.languages_lost)]

    @property
    def can_be_told(self) -> bool:
        return self.is_current or can_be_told(self.facts)

    @property
    def speaks(self) -> list[str]:
        return languages.words(self.facts.get("languages", []))

    @property
    def fits(self) -> bool | None:
        """Everywhere; None while it is unknown for one server."""
        found = [fit.fits for fit in self.look.fits]
        return None if not found or None in found else all(found)

    @property
    def at_32k(self) -> int | None:
        return _total([fit.at_32k for fit in self.look.fits])

    @property
    def at_128k(self) -> int | None:
        return _total([fit.at_128k for fit in self.look.fits])

    @property
    def clients(self) -> list[str]:
        """What it means for members' tools, in sentences."""
        if self.is_current:
            return [_("Nothing changes.")]
        said = [_("The name that your tools call and your key stay the same.")]
        if not self.can_be_told:
            said.append(_("Whether it can use tools, read images or reason is not known."))
        if "tools" in self.look.lost:
            said.append(
                _("Agents such as opencode or Claude Code need tools: they would not work.")
            )
        if "vision" in self.look.lost:
            said.append(_("Images in requests would be refused."))
        if "reasoning" in self.look.lost:
            said.append(_("Clients that ask for reasoning would get answers without it."))
        if "reasoning" in self.look.gained:
            said.append(_("It thinks before it answers: the first word comes later."))
        if 0 < self.look.context_after < self.look.context_before:
            said.append(_("Set a lower context limit in your client, or long sessions will fail."))
        return said


def capability_words(names: Iterable[str]) -> list[str]:
    return [str(CAPABILITIES.get(name, name)) for name in names]


def _total(found: list[int | None]) -> int | None:
    known = [number for number in found if number is not None]
    return sum(known) if known and len(known) == len(found) else None


def cards(vote: Vote) -> list[Card]:
    """In the order of the ballot."""
    rows = list(vote.candidates.select_related("proposal", "model").order_by("position"))
    before = {} if all(row.outlook for row in rows) else facts_of_current(vote.slot)
    return [_card(candidate, vote, before) for candidate in rows]


def _card(candidate: Candidate, vote: Vote, before: Facts) -> Card:
    kept = candidate.outlook
    facts = candidate.facts if kept else before if candidate.is_current else facts_of(candidate)
    return Card(
        code=candidate.code,
        title=candidate.title,
        repo=candidate.repo,
        is_current=candidate.is_current,
        facts=facts,
        look=Look.from_json(kept) if kept else look(facts, vote.slot, before),
        proposal=candidate.proposal,
    )


def of_proposal(proposal: Proposal, before: Facts | None = None) -> Card:
    """`before`: of the model that runs, where somebody has looked it up already."""
    slot = proposal.slot
    before = facts_of_current(slot) if before is None else before
    return Card(
        code=proposal.repo,
        title=proposal.repo.rpartition("/")[2],
        repo=proposal.repo,
        is_current=False,
        facts=proposal.facts,
        look=look(proposal.facts, slot, before),
        proposal=proposal,
    )


def of_current(slot: Slot) -> Card:
    """What runs now, to stand beside a proposal."""
    if (model := slot.model) is None:
        raise Refused("nothing_runs")
    facts = facts_of_current(slot)
    return Card(
        code=KEEP,
        title=str(model),
        repo=model.repo,
        is_current=True,
        facts=facts,
        look=look(facts, slot, facts),
    )


def facts_of(candidate: Candidate) -> Facts:
    """The catalogue, where it knows the model, over what the hub says: that is how it would run."""
    said = candidate.proposal.facts if candidate.proposal else {}
    return {**said, **(of_model(candidate.model) if candidate.model else {})}


def of_model(model: CatalogModel) -> Facts:
    facts = {
        "licence": model.licence,
        "revision": model.revision,
        "config": model.config,
        "weights_bytes": model.weights_mib * MIB,
        "context": model.context_length,
        "capabilities": model.capabilities,
        "kv_dtype": model.flags.get("kv-cache-dtype"),
    }
    return {name: value for name, value in facts.items() if value}


def facts_of_current(slot: Slot) -> Facts:
    """The catalogue does not keep which languages a model speaks: what was found out when it was
    proposed, if it was."""
    if slot.model is None:
        return {}
    told = Proposal.objects.filter(repo__iexact=slot.model.repo).order_by("-pk").first()
    spoken = told.facts.get("languages") if told else None
    return {**of_model(slot.model), **({"languages": spoken} if spoken else {})}


def look(facts: Facts, slot: Slot, before: Facts) -> Look:
    """`before`: facts of what runs now; the current model beside itself gains and loses nothing."""
    has, had = (set(side.get("capabilities", [])) for side in (facts, before))
    speaks, spoke = (set(side.get("languages", [])) for side in (facts, before))
    known = bool(speaks and spoke)
    return Look(
        gained=sorted(has - had),
        lost=sorted(had - has) if can_be_told(facts) else [],
        languages_gained=sorted(speaks - spoke) if known else [],
        languages_lost=sorted(spoke - speaks) if known else [],
        context_before=int(before.get("context", 0)),
        context_after=int(facts.get("context", 0)),
        speed="similar" if facts is before else _speed(facts, before),
        fits=_fits(facts, slot),
    )


def can_be_told(facts: Facts) -> bool:
    """What it can do. Beside a config that was read, an empty list says: nothing of all this."""
    return bool(facts.get("capabilities") or facts.get("config"))


def _speed(facts: Facts, before: Facts) -> str:
    new, old = (
        active_bytes(side.get("config") or {}, side.get("weights_bytes"))
        for side in (facts, before)
    )
    if not new or not old:
        return ""
    share = new / old
    return "faster" if share < FASTER else "slower" if share > SLOWER else "similar"


def _fits(facts: Facts, slot: Slot) -> list[ServerFit]:
    found = prospects(
        slot,
        config=facts.get("config") or {},
        weights_bytes=facts.get("weights_bytes"),
        context=int(facts.get("context", 0)),
        kv_dtype=str(facts.get("kv_dtype") or "auto"),
    )
    return [
        ServerFit(
            server=place.server,
            gpus=place.gpus,
            replicas=place.replicas,
            fits=place.fits,
            at_32k=place.requests[SHORT],
            at_128k=place.requests[LONG],
            notes=place.notes,
        )
        for place in found
    ]
