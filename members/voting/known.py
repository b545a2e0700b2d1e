"""What is known of a model and who says so: one answer for vetting, the proposal and the ballot.

Where the catalogue has an entry of the repository its figures count, since that is how the model
would run here. Else what an admin typed, over what the hub says.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models.functions import Lower
from django.utils.translation import gettext as _

from inference.models import CatalogModel, Slot
from members.models import Candidate, Proposal
from members.voting.facts import TYPED, names_of
from members.voting.proposals import catalogued

Facts = dict[str, Any]
Entries = Mapping[str, CatalogModel]
MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Known:
    facts: Facts = field(default_factory=dict)
    entry: str = ""
    """Name in the catalogue, where the figures come from there."""
    typed: list[str] = field(default_factory=list)
    """Facts that count as an admin typed them."""


def of_proposal(proposal: Proposal, entries: Entries | None = None) -> Known:
    """`entries`: of several proposals, where they have been looked up already."""
    found = entries_of([proposal.repo]) if entries is None else entries
    placed = next(iter(proposal.candidates.all()), None)
    return _known(proposal, (placed and placed.model) or found.get(proposal.repo.lower()))


def settled(proposal: Proposal) -> list[str]:
    """What the catalogue says of it: typing these would change nothing."""
    entry = catalogued(proposal.repo)
    return list(of_model(entry)) if entry else []


def of_candidate(candidate: Candidate, entries: Entries | None = None) -> Known:
    """Before the vote opens: then its row keeps what was known."""
    found = entries_of([candidate.repo]) if entries is None else entries
    return _known(candidate.proposal, candidate.model or found.get(candidate.repo.lower()))


def entries_of(repos: Iterable[str]) -> Entries:
    """Of the catalogue, by the repository in small letters; as `catalogued` for each."""
    rows = CatalogModel.objects.annotate(small=Lower("repo")).order_by("offered", "pk")
    wanted = {repo.lower() for repo in repos}
    return {row.repo.lower(): row for row in rows.filter(small__in=wanted)}


def _known(proposal: Proposal | None, entry: CatalogModel | None) -> Known:
    counts = of_model(entry) if entry else {}
    typed = proposal.typed if proposal else {}
    return Known(
        facts={**(proposal.facts if proposal else {}), **counts},
        entry=entry.name if entry else "",
        typed=[name for name in TYPED if name in typed and name not in counts],
    )


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
    return {name: value for name, value in facts.items() if value or name == "capabilities"}


def of_current(slot: Slot) -> Known:
    """The catalogue does not keep which languages a model speaks: what was found out when it was
    proposed, if it was."""
    if slot.model is None:
        return Known()
    told = Proposal.objects.filter(repo__iexact=slot.model.repo).order_by("-pk").first()
    spoken = told.facts.get("languages") if told else None
    facts = {**of_model(slot.model), **({"languages": spoken} if spoken else {})}
    return Known(facts=facts, entry=slot.model.name)


def sources(*, entry: str, typed: list[str], facts: Facts) -> list[str]:
    """In sentences for whoever reads the figures."""
    said = []
    if entry:
        said.append(
            _("Figures: from our catalogue (entry %(entry)s), as it runs here or would.")
            % {"entry": entry}
        )
    elif set(facts) - set(typed):
        said.append(_("Figures: from its repository on Hugging Face."))
    if typed:
        said.append(_("Typed by an admin: %(names)s.") % {"names": ", ".join(names_of(typed))})
    return said
