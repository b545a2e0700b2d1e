"""The ballot and its receipt, as a voter, somebody else and a script meet them."""

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from members import membership
from members.models import Ballot, Mail, User, Vote
from members.voting import ballots, receipts, rounds
from tests.members.voting.conftest import A, B, deadline_passes, guards_off, in_days, joined
from tests.members.voting.pages.conftest import text
from tests.people import person, signed_in
from tests.waiting import at_once

pytestmark = pytest.mark.django_db
PAGE = "/vote/2026-Q4/"
RANKS = {"rank:keep": "2", f"rank:{A}": "1", f"rank:{B}": ""}


def words_of(user: User, language: str = "en") -> str:
    return receipts.words(Ballot.objects.get(voter__user=user).receipt, language)


# -- What it says -------------------------------------------------------------------------------
def test_each_candidate_stands_beside_what_runs_now(vote: Vote, replica: Any, ana: Client) -> None:
    said = text(ana.get(PAGE))
    assert said.count("Members at once, 32k tokens each") == 2
    assert said.count("On our servers") == 2
    assert "The licence is not known yet." in said
    assert "Whether it can use tools, read images or reason is not known." in said
    assert "they would not work" not in said
    assert "Lost not known" in said
    assert "keep the current model" in said


def test_the_rules_stand_on_it_in_plain_words(vote: Vote, ana: Client) -> None:
    said = text(ana.get(PAGE))
    for words in (
        "this is Schulze's method",
        "At least 30 % of the roll must vote.",
        "A tie never starts a rotation by itself.",
        "Everybody who is an active member when the vote opens",
        f"The roll has 4 people; the SHA-256 of their ids is {vote.roll_digest} .",
        "At the close the link is erased in the same step that counts.",
        "The result and the ballots are shown to members only.",
    ):
        assert words in said


def test_the_deadline_in_madrid_with_its_distance_from_utc(prepared: Vote, admin: User) -> None:
    """On a Sunday when the clocks change it is the same moment that is enforced."""
    until = datetime(2027, 10, 31, 22, 59, tzinfo=UTC)
    rounds.open_vote(vote=prepared, actor=admin, closes_at=in_days(7))
    with guards_off():
        Vote.objects.update(opened_at=until - rounds.LONGEST, closes_at=until)
    page = signed_in(joined("Eva")).get(PAGE).content.decode()
    moment = '<time datetime="2027-10-31T23:59:00+01:00">31 October 2027, 23:59</time>'
    assert f"{moment} <span>(Madrid, UTC+1)</span>" in page


# -- Casting ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"rank:acme/gamma": "2"}, "is not on this ballot"),
        ({f"rank:{B}": "4"}, "higher than there are options"),
        ({f"rank:{B}": ["2", "3"]}, "has two numbers"),
    ],
)
def test_what_the_page_does_not_offer_is_refused_and_the_rest_kept(
    vote: Vote, ana: Client, sent: Any, says: str
) -> None:
    answer = ana.post(PAGE, {f"rank:{A}": "1", **sent})
    assert (answer.status_code, Ballot.objects.exists()) == (422, False)
    assert says in text(answer)
    assert '<option value="1" selected>' in answer.content.decode()


def test_cast_look_and_change(vote: Vote, ana: Client, voters: list[User]) -> None:
    answer = ana.post(PAGE, RANKS)
    assert (answer.status_code, answer.url) == (302, f"{PAGE}receipt/")
    assert ballots.mine(vote=vote, user=voters[0]) == [[A], ["keep"]]
    said = text(ana.get(answer.url))
    assert "alpha-7B (B) Now-One (A) Not ranked: beta-32B (C)" in said
    ana.post(PAGE, {f"rank:{B}": "3", "rank:keep": "3"})
    assert "Now-One (A) = beta-32B (C)" in text(ana.get(f"{PAGE}receipt/"))
    assert Ballot.objects.count() == 1


def test_her_ballot_is_filled_in_when_she_comes_back(vote: Vote, ana: Client) -> None:
    ana.post(PAGE, RANKS)
    rows = ana.get(PAGE).context["rows"]
    assert {card.code: rank for card, rank in rows} == {"keep": "2", A: "1", B: ""}


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ({}, "Rank at least one option. Nothing was stored."),
        ({f"rank:{A}": "first"}, "Each option can be ranked once, with a whole number."),
        ({f"rank:{A}": "9" * 9000}, "Each option can be ranked once, with a whole number."),
        ({f"rank:{A}": "-1"}, "Each option can be ranked once, with a whole number."),
    ],
)
def test_what_is_no_ranking_is_said_and_stored_nowhere(
    vote: Vote, ana: Client, ranks: dict[str, str], words: str
) -> None:
    answer = ana.post(PAGE, ranks)
    assert answer.status_code == 422
    assert words in text(answer)
    assert not Ballot.objects.exists()


def test_what_was_typed_stands_there_after_a_refusal(vote: Vote, ana: Client) -> None:
    rows = ana.post(PAGE, {"rank:keep": "1", f"rank:{A}": "x"}).context["rows"]
    assert {card.code: rank for card, rank in rows} == {"keep": "1", A: "x", B: ""}


def test_a_get_changes_nothing(vote: Vote, ana: Client, voters: list[User]) -> None:
    ana.get(PAGE, RANKS)
    assert not Ballot.objects.exists()
    ana.post(PAGE, RANKS)
    for path in (PAGE, f"{PAGE}receipt/", f"{PAGE}result/", "/vote/"):
        ana.get(path)
        ana.head(path)
    assert ballots.receipt_waits(vote=vote, user=voters[0])
    assert ana.get(f"{PAGE}receipt/mail/").status_code == 405


@pytest.mark.django_db(transaction=True)
def test_twenty_posts_at_once_are_one_ballot(vote: Vote, voters: list[User]) -> None:
    """With different rankings. The page shows the one that is stored, and it is one of them."""
    clients = [signed_in(voters[0]) for _ in range(20)]

    def post(number: int) -> int:
        ranks = {f"rank:{A}": "1", "rank:keep": "2"} if number % 2 else {f"rank:{B}": "1"}
        return clients[number].post(PAGE, ranks).status_code

    assert set(at_once([partial(post, number) for number in range(20)])) == {302}
    assert Ballot.objects.count() == 1
    stored = ballots.mine(vote=vote, user=voters[0])
    assert stored in ([[A], ["keep"]], [[B]])
    shown = "alpha-7B (B) Now-One" if stored[0] == [A] else "beta-32B (C) Not ranked"
    assert shown in text(clients[0].get(f"{PAGE}receipt/"))


# -- Who ----------------------------------------------------------------------------------------
def unconfirmed() -> User:
    user = person("Uma", confirmed=False)
    user.applications.create(state="approved", builds="x", tokens_per_day="to-10m")
    return user


def waiting() -> User:
    user = person("Wim")
    user.applications.create(state="pending", builds="x", tokens_per_day="to-10m")
    return user


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (waiting, "You are on the waitlist."),
        (unconfirmed, "Your e-mail address is not confirmed"),
        (lambda: joined("Late"), "You became a member after this vote had opened."),
        (lambda: person("Otto"), "Only members can do this."),
    ],
)
def test_v4_who_is_not_on_the_roll_is_told_why(vote: Vote, make: Any, words: str) -> None:
    client = signed_in(make())
    answer = client.post(PAGE, RANKS)
    assert answer.status_code == 403
    assert words in text(answer)
    assert words in text(client.get(PAGE))
    assert not Ballot.objects.exists()


def test_v4_suspended_and_gone_are_refused(vote: Vote, voters: list[User], admin: User) -> None:
    """Whether her session lives or not."""
    membership.suspend(membership=voters[2].membership, actor=admin, reason="x")
    answer = signed_in(User.objects.get(pk=voters[2].pk)).post(PAGE, RANKS)
    assert answer.status_code in (302, 403)
    client = signed_in(voters[3])
    membership.leave(user=voters[3])
    assert client.post(PAGE, RANKS).status_code in (302, 403)
    assert not Ballot.objects.exists()


def test_an_outsider_reads_nothing_of_the_ballot(vote: Vote, outsider: User) -> None:
    assert Client().get(PAGE).status_code == 302
    page = signed_in(outsider).get(PAGE)
    assert page.status_code == 403
    assert A not in page.content.decode()


def test_an_admin_who_is_no_member_reads_it_and_has_no_form(vote: Vote, alma: Client) -> None:
    page = alma.get(PAGE)
    assert page.status_code == 200
    assert 'id="ranking"' not in page.content.decode()


# -- When ---------------------------------------------------------------------------------------
def test_one_second_late_is_refused_with_the_beat_stopped(vote: Vote, ana: Client) -> None:
    deadline_passes(vote, seconds=1)
    answer = ana.post(PAGE, RANKS)
    assert answer.status_code == 409
    assert "This vote is over; this ballot was not counted." in text(answer)
    assert not Ballot.objects.exists()
    assert 'id="ranking"' not in ana.get(PAGE).content.decode()


def test_before_it_opens_there_are_options_once_it_is_scheduled(
    prepared: Vote, ana: Client, admin: User
) -> None:
    assert ana.get(PAGE).status_code == 404
    assert ana.post(PAGE, RANKS).status_code == 409
    rounds.schedule(vote=prepared, actor=admin, opens_at=in_days(1), closes_at=in_days(2))
    page = ana.get(PAGE)
    assert "Not open yet. It opens on" in text(page)
    assert 'id="ranking"' not in page.content.decode()
    rounds.cancel(vote=prepared, actor=admin)
    assert ana.get(PAGE).status_code == 404


def test_after_the_close_it_leads_to_the_result(vote: Vote, over: Any, ana: Client) -> None:
    ana.post(PAGE, RANKS)
    over(vote)
    assert ana.get(PAGE).url == f"{PAGE}result/"
    assert ana.get(f"{PAGE}receipt/").url == PAGE
    assert ana.post(f"{PAGE}receipt/").url == PAGE
    late = ana.post(PAGE, RANKS)
    assert late.status_code == 409
    assert "the ballots are counted. The result" in text(late)
    assert "Not open yet" not in text(late)


def test_unknown_rounds_are_not_there(voters: list[User], ana: Client) -> None:
    for path in ("", "receipt/", "result/", "check/", "ballots.csv", "ballots.json"):
        assert ana.get(f"/vote/2031-Q1/{path}").status_code == 404


def test_extensions_are_shown_to_all(
    vote: Vote, ana: Client, admin: User, other_admin: User
) -> None:
    asked = rounds.ask_extension(vote=vote, actor=admin, closes_at=in_days(9), reason="A holiday.")
    assert "It counts only if another admin confirms it in time. A holiday." in text(ana.get(PAGE))
    rounds.confirm_extension(extension=asked, actor=other_admin)
    assert "Asked by Alma, confirmed by Bruno. A holiday." in text(ana.get(PAGE))


# -- The receipt --------------------------------------------------------------------------------
def test_the_four_words_are_shown_once(vote: Vote, ana: Client, voters: list[User]) -> None:
    ana.post(PAGE, RANKS)
    words = words_of(voters[0])
    assert words not in text(ana.get(f"{PAGE}receipt/"))
    shown = ana.post(f"{PAGE}receipt/")
    assert words in text(shown)
    assert "no-store" in shown["Cache-Control"]
    again = text(ana.post(f"{PAGE}receipt/"))
    assert words not in again
    assert "It was shown already" in again
    ana.post(PAGE, RANKS)
    assert words in text(ana.post(f"{PAGE}receipt/"))


def test_the_words_are_of_the_language_that_she_reads(
    vote: Vote, voters: list[User], ana: Client
) -> None:
    User.objects.update(language="es")
    ana.post(PAGE, RANKS)
    assert words_of(voters[0], "es") in text(ana.post(f"{PAGE}receipt/"))


def test_it_is_mailed_only_if_she_asks(vote: Vote, ana: Client, voters: list[User]) -> None:
    ana.post(PAGE, RANKS)
    ana.post(f"{PAGE}receipt/")
    assert not Mail.objects.filter(kind="vote_receipt").exists()
    for _ in range(2):
        said = text(ana.post(f"{PAGE}receipt/mail/"))
        assert "The mail with your four words is on its way." in said
        assert words_of(voters[0]) not in said
    assert Mail.objects.filter(kind="vote_receipt").count() == 1


def test_without_a_ballot_there_is_no_receipt(vote: Vote, ana: Client, bea: Client) -> None:
    ana.post(PAGE, RANKS)
    for path in ("receipt/", "receipt/mail/"):
        assert bea.post(f"{PAGE}{path}").url == PAGE
    assert bea.get(f"{PAGE}receipt/").url == PAGE


def test_v6_neither_ranking_nor_receipt_is_left_anywhere(
    vote: Vote, ana: Client, voters: list[User], capfd: pytest.CaptureFixture[str]
) -> None:
    """Session, cookies, messages, addresses, headers, log lines."""
    answers = [ana.post(PAGE, RANKS), ana.get(f"{PAGE}receipt/"), ana.post(f"{PAGE}receipt/")]
    answers += [ana.post(f"{PAGE}receipt/mail/"), ana.get(PAGE)]
    words = words_of(voters[0])
    secrets = [words, words.replace(" ", "-"), A, "rank:"]
    left = [str(Session.objects.get(pk=ana.session.session_key).get_decoded())]
    left += [str(ana.cookies), *capfd.readouterr()]
    left += [f"{answer.headers} {answer.request}" for answer in answers[1:]]
    left += [str(answers[0].headers)]
    assert [secret for secret in secrets for one in left if secret in one] == []


# -- No counts ----------------------------------------------------------------------------------
def test_v8_nothing_differs_by_how_many_have_voted(
    vote: Vote, ana: Client, bea: Client, alma: Client, voters: list[User]
) -> None:
    """Every page that speaks of the round, byte by byte and header by header, but for tokens."""
    paths = [PAGE, "/", "/vote/", "/key/", f"{PAGE}result/", f"{PAGE}check/", f"{PAGE}ballots.json"]
    mine = ["/staff/votes/", "/staff/votes/2026-Q4/", "/admin/members/vote/", "/staff/"]

    def seen() -> list[tuple[str, int, str]]:
        pages = [(path, bea.get(path)) for path in paths]
        pages += [(path, alma.get(path)) for path in [*paths[:3], *paths[4:], *mine]]
        token = r'(name="csrfmiddlewaretoken" value=|X-CSRFToken": )"[^"]+"'
        for _path, page in pages:
            del page["Expires"]  # the time at which it was asked for
        return [
            (path, page.status_code, re.sub(token, "", page.content.decode()) + str(page.headers))
            for path, page in pages
        ]

    before = seen()
    ana.post(PAGE, RANKS)
    ballots.cast(vote=vote, user=voters[2], ranking=[["keep"]])
    for (path, *was), (_path, *now) in zip(before, seen(), strict=True):
        assert now == was, path


def test_the_header_says_that_a_vote_is_open_until_it_is_not(vote: Vote, ana: Client) -> None:
    assert "The vote 2026-Q4 is open until" in text(ana.get("/key/"))
    deadline_passes(vote)
    cache.clear()
    assert "The vote 2026-Q4 is open" not in text(ana.get("/key/"))


def test_a_deadline_that_has_passed_is_not_announced_from_memory(
    vote: Vote, ana: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana.get("/key/")
    later = timezone.now() + timedelta(days=8)
    monkeypatch.setattr("members.templatetags.votes.timezone.now", lambda: later)
    assert "is open until" not in text(ana.get("/vote/"))
