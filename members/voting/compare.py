"""What is said of each option, beside the model that runs now.

Computed anew until the vote opens; then copied to the ballot, where it stays as it was.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inference.fit.weights import active_bytes
from inference.models import Slot
from inference.names.changes import CAPABILITIES
from inference.swaps.prospects import CONTEXTS, prospects
from members.models import Candidate, Proposal, Vote
from members.models.votes import KEEP
from members.tally import mark
from members.voting import known, languages, licences
from members.voting.known import Entries, Facts, Known
from members.voting.refusals import Refused

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

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
    entry: str = ""
    typed: list[str] = field(default_factory=list)
    """Where the figures come from: see members.voting.known."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def context_change(self) -> int:
        """In tokens; nothing where one of the two is not known."""
        known_both = self.context_before and self.context_after
        return self.context_after - self.context_before if known_both else 0

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
    mark: str = ""
    """Its letter on the ballot."""
    runs_now: bool = False
    """The current model of a vote may be one that has been replaced meanwhile."""
    fixed_in: str = ""
    """Name of the vote that has opened with these figures."""

    @property
    def sources(self) -> list[str]:
        return known.sources(entry=self.look.entry, typed=self.look.typed, facts=self.facts)

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
            *([_("a longer context")] if self.look.context_change > 0 else []),
            *languages.words(self.look.languages_gained),
        ]

    @property
    def lost_words(self) -> list[str]:
        return [
            *capability_words(self.look.lost),
            *([_("a part of the context")] if self.look.context_change < 0 else []),
            *languages.words(self.look.languages_lost),
        ]

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
        """What it means for members' tools, in sentences; nothing where nothing changes. Their name
        for the model and their key stay the same with any."""
        said: list[str] = []
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
        if self.look.context_change < 0:
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
    undecided = any(not row.outlook for row in rows)
    before = known.of_current(vote.slot) if undecided else Known()
    entries = known.entries_of(row.repo for row in rows) if undecided else {}
    return [
        _card(row, vote, before if row.is_current else known.of_candidate(row, entries), before, n)
        for n, row in enumerate(rows)
    ]


def _card(candidate: Candidate, vote: Vote, now: Known, before: Known, place: int = 0) -> Card:
    """`now` and `before` count until the vote opens: then its row keeps what was said."""
    kept = candidate.outlook
    return Card(
        code=candidate.code,
        title=candidate.title,
        repo=candidate.repo,
        is_current=candidate.is_current,
        facts=candidate.facts if kept else now.facts,
        look=Look.from_json(kept) if kept else look(now, vote.slot, before),
        proposal=candidate.proposal,
        mark=mark(place),
        runs_now=candidate.runs_now,
        fixed_in=vote.slug if kept else "",
    )


def of_proposal(
    proposal: Proposal, before: Known | None = None, entries: Entries | None = None
) -> Card:
    """As the ballot has it, once a vote has opened with it. `before`, `entries`: what runs and what
    the catalogue has, where somebody has looked them up already."""
    slot = proposal.slot
    if fixed := on_ballot(proposal):
        return _card(fixed, fixed.vote, Known(), Known())
    before = known.of_current(slot) if before is None else before
    now = known.of_proposal(proposal, entries)
    return Card(
        code=proposal.repo,
        title=proposal.repo.rpartition("/")[2],
        repo=proposal.repo,
        is_current=False,
        facts=now.facts,
        look=look(now, slot, before),
        proposal=proposal,
    )


def on_ballot(proposal: Proposal) -> Candidate | None:
    """Its place in a vote that has opened: what is said there stands."""
    found = [one for one in proposal.candidates.all() if one.outlook]
    return found[0] if found else None


def beside(proposal: Proposal) -> Card | None:
    """What the proposal is compared with: what runs now, or ran when its vote opened."""
    if fixed := on_ballot(proposal):
        return next(card for card in cards(fixed.vote) if card.is_current)
    return of_current(proposal.slot) if proposal.slot.model else None


def of_current(slot: Slot) -> Card:
    """What runs now, to stand beside a proposal."""
    if (model := slot.model) is None:
        raise Refused("nothing_runs")
    now = known.of_current(slot)
    return Card(
        code=KEEP,
        title=str(model),
        repo=model.repo,
        is_current=True,
        facts=now.facts,
        look=look(now, slot, now),
        runs_now=True,
    )


def look(now: Known, slot: Slot, then: Known) -> Look:
    """`then`: of what runs now; the current model beside itself gains and loses nothing."""
    facts, before = now.facts, then.facts
    has, had = (set(side.get("capabilities", [])) for side in (facts, before))
    speaks, spoke = (set(side.get("languages", [])) for side in (facts, before))
    both = bool(speaks and spoke)
    return Look(
        gained=sorted(has - had),
        lost=sorted(had - has) if can_be_told(facts) else [],
        languages_gained=sorted(speaks - spoke) if both else [],
        languages_lost=sorted(spoke - speaks) if both else [],
        context_before=int(before.get("context", 0)),
        context_after=int(facts.get("context", 0)),
        speed="similar" if now is then else _speed(facts, before),
        fits=_fits(facts, slot),
        entry=now.entry,
        typed=now.typed,
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
