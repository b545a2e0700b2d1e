"""Votes in every state in which a page looks different."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.utils import timezone
from playwright.sync_api import Page

from inference.models import Slot, Swap, SwapState
from inference.swaps import plan
from members.models import Proposal, User, Vote
from members.voting import ballots, closing, proposals, ratify, rounds, shortlist
from tests.browser.view import View, click, open_all
from tests.inference.staff import rows
from tests.members.voting.conftest import deadline_passes, joined
from tests.people import applicant

REPOS = ("acme/birch", "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8", "mistralai/Magistral-Small-2509")
REASON = (
    "It reads pictures of forms, which half of us need, and it answers in Catalan and Galician"
    " without mixing them up."
)
FACTS = {
    "parameters": 30_500_000_000,
    "active_parameters": 3_300_000_000,
    "licence": "apache-2.0",
    "context": 262_144,
    "capabilities": ["tools", "reasoning", "vision"],
    "languages": ["es", "en", "ca", "gl", "eu"],
    "weights_bytes": 31_200_000_000,
    "revision": "c" * 40,
    "config": rows.CONFIG,
}


def vote_views(admin: User, other: User) -> Iterator[View]:
    voters = [joined(name) for name in ("Ana", "Bea", "Carla", "Dolores", "Eva")]
    old = rows.catalogue_model("alder", "Alder 9B", capabilities=["tools", "reasoning"])
    slot, _replicas, _new = rows.small_fleet(2, prefix="atlas", old=old)
    yield from proposal_views(slot, voters, admin)
    yield from preparing_views(slot, voters, admin)
    yield from open_views(slot, voters, admin, other)


# -- Proposals ----------------------------------------------------------------------------------
def proposal_views(slot: Slot, voters: list[User], admin: User) -> Iterator[View]:
    ana, bea = voters[:2]
    known = proposed(slot, ana, "Qwen/Qwen3-Next-80B-A3B-Instruct")
    Proposal.objects.filter(pk=known.pk).update(looked_up=FACTS, facts_state="known")
    failed = proposed(slot, ana, "acme/unknown-to-the-hub")
    Proposal.objects.filter(pk=failed.pk).update(facts_state="failed", facts_error="repo_missing")
    due = proposed(slot, bea, "acme/just-proposed")
    proposals.second(proposal=known, user=bea)
    declined = proposed(slot, bea, "acme/too-big-480B")
    shortlist.decline(proposal=declined, actor=admin, reason="Too big for all servers we have.")
    yield View("vote, proposals", "/vote/", bea)
    yield View("proposal, known", f"/vote/proposals/{known.pk}/", bea, open_all)
    yield View("proposal, not found", f"/vote/proposals/{failed.pk}/", bea)
    yield View("proposal, declined", f"/vote/proposals/{declined.pk}/", bea)
    yield View("propose", "/vote/propose/", ana)

    def propose(repo: str) -> Any:
        def fill(page: Page) -> None:
            page.fill("[name=repo]", repo)
            page.fill("[name=reason]", REASON)
            page.click("main form .button:not(.quiet)")

        return fill

    yield View("propose, refused", "/vote/propose/", ana, propose("nonsense"))
    yield View("propose, the same", "/vote/propose/", ana, propose(due.repo))
    yield View("propose, alike", "/vote/propose/", ana, propose("other/just-proposed-AWQ"))
    yield View("staff, proposal", f"/staff/proposals/{known.pk}/", admin, open_all)
    yield View("staff, proposal, not found", f"/staff/proposals/{failed.pk}/", admin)
    yield View(
        "staff, proposal, facts refused", f"/staff/proposals/{failed.pk}/", admin, impossible
    )
    rows.catalogue_model("cedar", "Cedar 12B")
    listed = proposed(slot, voters[3], "acme/cedar")
    yield View(
        "staff, proposal, in the catalogue", f"/staff/proposals/{listed.pk}/", admin, open_all
    )
    yield View(
        "propose, what resembles the one that runs", "/vote/propose/", ana, propose("x/Alder")
    )


def impossible(page: Page) -> None:
    open_all(page)
    page.fill("[name=parameters]", "5")
    page.fill("[name=revision]", "main")
    page.click("form[action$='/facts/'] .button")


def proposed(slot: Slot, user: User, repo: str) -> Proposal:
    return proposals.propose(user=user, slot=slot, repo=repo, reason=REASON)


# -- Rounds -------------------------------------------------------------------------------------
def preparing_views(slot: Slot, voters: list[User], admin: User) -> Iterator[View]:
    planned = rounds.prepare(slot=slot, slug="2027-Q2", actor=admin)
    yield View("staff, vote, being prepared", "/staff/votes/2027-Q2/", admin, open_all)
    yield View("staff, vote, refused", "/staff/votes/2027-Q2/", admin, refused_dates)
    yield View("staff, votes", "/staff/votes/", admin, open_all)
    third = proposed(slot, voters[2], "acme/planned-12B")
    shortlist.accept(proposal=third, vote=planned, actor=admin)
    opens = timezone.now() + timedelta(days=80)
    closes = opens + timedelta(days=7)
    rounds.schedule(vote=planned, actor=admin, opens_at=opens, closes_at=closes)
    yield View("ballot, planned", "/vote/2027-Q2/", voters[0])


def refused_dates(page: Page) -> None:
    page.fill("[name=opens_at]", "2026-10-25T02:30")
    page.fill("form[action$='/schedule/'] [name=closes_at]", "2026-12-25T02:30")
    page.click("form[action$='/schedule/'] .button")


def round_of(slot: Slot, slug: str, admin: User, proposer: User) -> Vote:
    vote = rounds.prepare(slot=slot, slug=slug, actor=admin)
    for repo in REPOS:
        row = proposed(slot, proposer, repo)
        facts = {**FACTS, "capabilities": ["vision"]} if repo == REPOS[2] else FACTS
        Proposal.objects.filter(pk=row.pk).update(looked_up=facts, facts_state="known")
        shortlist.accept(proposal=row, vote=vote, actor=admin)
    until = timezone.now() + timedelta(days=7)
    return rounds.open_vote(vote=vote, actor=admin, closes_at=until)


def open_views(slot: Slot, voters: list[User], admin: User, other: User) -> Iterator[View]:
    """All is made before the first page is looked at: each state has a round of its own."""
    ana, bea, carla, eva = voters[0], voters[1], voters[2], voters[4]
    rows.catalogue_model("magistral", repo=REPOS[2])
    missed = over(round_of(slot, "2026-Q1", admin, eva), [])
    yield View("result, quorum missed", f"/vote/{missed.slug}/result/", bea)
    kept = over(round_of(slot, "2026-Q2", admin, eva), [(v, [["keep"]]) for v in voters[:3]])
    yield View("result, kept", f"/vote/{kept.slug}/result/", bea)
    yield View("staff, vote, kept", f"/staff/votes/{kept.slug}/", admin)
    won = over(round_of(slot, "2026-Q3", admin, eva), circle(voters))
    yield View("result", f"/vote/{won.slug}/result/", bea, open_all)
    yield View("result, no such receipt", f"/vote/{won.slug}/result/", bea, find_nothing)
    yield View("count again", f"/vote/{won.slug}/check/", bea, recounted)
    vain = over(round_of(slot, "2026-Q3a", admin, eva), circle(voters))
    plan.cancel(swap=ratified(vain, admin), actor=admin)
    yield View("result, plan cancelled", f"/vote/{vain.slug}/result/", bea)
    yield View("staff, vote, plan cancelled", f"/staff/votes/{vain.slug}/", admin)
    planned = ratified(won, admin)
    waiting = Swap.objects.filter(pk=planned.pk)
    waiting.update(state=SwapState.CANCELLED)  # for now: no round opens while a swap waits
    yield View("staff, vote, planned", f"/staff/votes/{won.slug}/", admin)
    new = over(round_of(slot, "2026-Q3b", admin, eva), [(v, [[REPOS[1]]]) for v in voters[:3]])
    yield View("staff, vote, model missing", f"/staff/votes/{new.slug}/model/", admin)
    tie = over(round_of(slot, "2026-Q3c", admin, eva), tied(voters))
    yield View("result, tie", f"/vote/{tie.slug}/result/", bea)
    yield View("staff, ratify", f"/staff/votes/{tie.slug}/ratify/", admin)
    vote = round_of(slot, "2026-Q4", admin, eva)
    waiting.update(state=planned.state)
    later = vote.closes_at + timedelta(days=2)
    asked = rounds.ask_extension(vote=vote, actor=admin, closes_at=later, reason="A holiday.")
    rounds.confirm_extension(extension=asked, actor=other)
    rounds.ask_extension(
        vote=vote, actor=admin, closes_at=later + timedelta(days=1), reason="A storm."
    )
    for voter in (bea, carla):
        ballots.cast(vote=vote, user=voter, ranking=[[REPOS[1]], [REPOS[0], "keep"]])
    ballots.show_receipt(vote=vote, user=carla)
    yield View("ballot", "/vote/2026-Q4/", ana)
    yield View("ballot, all open", "/vote/2026-Q4/", ana, open_all)
    yield View("ballot, empty", "/vote/2026-Q4/", ana, click("#ranking-form .actions .button"))
    yield View("ballot, cast", "/vote/2026-Q4/", bea)
    yield View("ballot, waiting", "/vote/2026-Q4/", applicant("Wanda").user)
    yield View("ballot, late member", "/vote/2026-Q4/", joined("Zita"))
    yield View("receipt, stored", "/vote/2026-Q4/receipt/", bea)
    yield View("receipt, shown already", "/vote/2026-Q4/receipt/", carla)
    yield View(
        "receipt, mailed", "/vote/2026-Q4/receipt/", carla, click("form[action$=mail\\/] .button")
    )
    yield View(
        "receipt, words", "/vote/2026-Q4/receipt/", bea, click("form[action$=receipt\\/] .button")
    )
    yield View("vote, all at once", "/vote/", ana)
    yield View("key, a vote is open", "/key/", ana)
    yield View("staff, vote, open", "/staff/votes/2026-Q4/", other, open_all)


def over(vote: Vote, cast: list[tuple[User, Any]]) -> Vote:
    for user, ranking in cast:
        ballots.cast(vote=vote, user=user, ranking=ranking)
    closing.close(vote=deadline_passes(vote))
    vote.refresh_from_db()
    return vote


def circle(voters: list[User]) -> list[tuple[User, Any]]:
    """Birch before the others, which go round."""
    a, b, c = REPOS
    rankings = ([[a], [b], ["keep"], [c]], [[a], ["keep"], [c], [b]], [[a, c], [b]])
    return list(zip(voters, rankings, strict=False))


def tied(voters: list[User]) -> list[tuple[User, Any]]:
    a, _b, c = REPOS
    return [(voters[0], [[a], [c], ["keep"]]), (voters[1], [[c], [a], ["keep"]])]


def ratified(vote: Vote, admin: User) -> Swap:
    found = ratify.ratify(
        vote=vote,
        actor=admin,
        start_at=timezone.now() + timedelta(days=5),
        announcement_es="El domingo por la mañana pasamos a Birch.\nNo tenéis que hacer nada.",
        announcement_en="On Sunday morning we move to Birch.\nYou need to do nothing.",
    )
    assert found.swap
    return found.swap


def find_nothing(page: Page) -> None:
    page.fill("[name=receipt]", "one two three four")
    page.click("#mine form .button")


def recounted(page: Page) -> None:
    page.click("#count")
    page.wait_for_selector("#said .notice.good")
    page.fill("#words", "abandon abandon abandon abandon")
