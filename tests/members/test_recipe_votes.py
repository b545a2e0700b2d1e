"""Votes about recipes: for versions only, never for one's own, few enough to be read."""

import re
from typing import Any

import pytest
from django.test import Client

from members import recipe_votes, recipes, versions
from members.models import Recipe, RecipeVote, User
from tests.pages.markup import faults, words
from tests.people import signed_in

pytestmark = pytest.mark.django_db
PAGE = "/docs/examples/opencode/"


@pytest.fixture
def recipe(member: User, admin: User) -> Recipe:
    made = recipes.write(
        user=member,
        client="opencode",
        kind="problem",
        title="Compaction never starts",
        version="2.0.16",
        body="Set `limit.context` in the file.",
    )
    recipes.accept(edit=made.edits.get().pk, actor=admin)
    made.refresh_from_db()
    return made


@pytest.fixture
def voter(other_member: User) -> Client:
    return signed_in(other_member)


def say(client: Client, recipe: Recipe, version: str, works: str = "yes") -> Any:
    return client.post(f"/docs/texts/{recipe.pk}/vote/", {"version": version, "works": works})


def counted(reader: User) -> list[tuple[str, int, int, bool | None]]:
    (shown,) = recipe_votes.published("opencode", reader)
    return [(t.version, t.works, t.fails, t.hers) for t in shown.tallies]


def test_votes_are_hers_for_each_version(
    recipe: Recipe, voter: Client, other_member: User, admin: User
) -> None:
    for version, works in (("2.0.16", "yes"), ("2.0.16", "no"), ("2.1", "yes")):
        answer = say(voter, recipe, version, works)
        assert answer["Location"] == f"{PAGE}#text-{recipe.pk}"
    recipe_votes.vote(recipe=recipe, user=admin, version="2.0.16", works=True)
    assert counted(other_member) == [("2.1", 1, 0, True), ("2.0.16", 1, 1, False)]


def test_the_versions_that_are_there_are_choices(
    recipe: Recipe, voter: Client, other_member: User
) -> None:
    say(voter, recipe, "2.1")
    answer = voter.get(PAGE)
    page = answer.content.decode()
    assert faults(answer, language="en") == []
    assert re.findall(r'name="version" value="([^"]*)"', page) == ["2.1", "2.0.16"]
    assert "2.1 works for 1, does not for 0 You: works." in words(page)
    assert "I use another version" in page


def test_the_same_version_written_otherwise_is_the_same(
    recipe: Recipe, voter: Client, other_member: User
) -> None:
    written = ("2.0.16", " v2.0.16", "V2.0.16+a3f9c1", "version 2.0.16", "２.０.１６")
    for version in (*written, "02.0.16", "2.00.016"):
        say(voter, recipe, version)
    assert counted(other_member) == [("2.0.16", 1, 0, True)]


@pytest.mark.parametrize(
    "version",
    [
        "",
        "latest",
        "buy at evil.example",
        "2.0.16 buy at evil.example",
        "1-evil",
        "<b>1</b>",
        "2.0.16\u202e61",
        "1" * 41,
        "1.2.3.4.5",
        "9" * 9,
    ],
)
def test_a_version_is_nothing_but_a_version(recipe: Recipe, voter: Client, version: str) -> None:
    say(voter, recipe, version)
    assert not RecipeVote.objects.exists()
    assert "A version is a number, such as 2.0.16" in voter.get(PAGE).content.decode()


@pytest.mark.parametrize(
    "version",
    [
        "2",
        "2.0.16",
        "2026-11-02",
        "1.2.3.4",
        "3.1-beta.2",
        "3.1b2",
        "1.0rc1",
        "0.0.0-dev-202611011234",
    ],
)
def test_versions_as_clients_have_them(version: str) -> None:
    assert versions.plain(version) == version


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("02.0.16", "2.0.16"),
        ("3.01-beta.02", "3.1-beta.2"),
        ("1.0rc01", "1.0rc1"),
        ("0.0.00", "0.0.0"),
        ("2026-11-2", "2026-11-02"),
        ("10.20.300", "10.20.300"),
    ],
)
def test_zeros_before_a_number_make_no_other_version(written: str, same: str) -> None:
    assert versions.plain(written) == same


def test_newer_ones_come_first() -> None:
    some = ["2.0.16", "2.0.9", "10.0", "2.1-beta.2", "2.1"]
    assert sorted(some, key=versions.order, reverse=True) == [
        "10.0",
        "2.1",
        "2.1-beta.2",
        "2.0.16",
        "2.0.9",
    ]


def test_nobody_votes_for_her_own(recipe: Recipe, member: User) -> None:
    hers = signed_in(member)
    say(hers, recipe, "2.0.16")
    assert not RecipeVote.objects.exists()
    page = hers.get(PAGE).content.decode()
    assert "This text is yours" in page
    assert "You wrote this" in page
    assert f"/docs/texts/{recipe.pk}/vote/" not in page


def test_an_admin_who_put_it_into_other_words_wrote_it_too(
    recipe: Recipe, admin: User, other_admin: User
) -> None:
    text = {"title": "In other words", "version": "2.0.16", "body": "Set the limit of context."}
    recipes.edit(recipe=recipe, user=admin, **text)
    with pytest.raises(recipes.Refused):
        recipe_votes.vote(recipe=recipe, user=admin, version="2.0.16", works=True)
    recipe_votes.vote(recipe=recipe, user=other_admin, version="2.0.16", works=True)


def test_a_member_votes_about_ten_versions_at_most(
    recipe: Recipe, voter: Client, other_member: User
) -> None:
    for number in range(12):
        say(voter, recipe, f"1.{number}")
    assert RecipeVote.objects.count() == recipe_votes.EACH_MOST
    assert "You have voted about ten versions here" in voter.get(PAGE).content.decode()
    say(voter, recipe, "1.0", "no")  # she may still change her mind
    assert RecipeVote.objects.get(version="1.0").works is False


def test_a_few_votes_fill_no_page(
    recipe: Recipe, voter: Client, member: User, other_member: User, admin: User
) -> None:
    """The text's own version and those that most speak of stay; made-up ones push none out."""
    for version in ("2.0.15", "2.0.16"):
        recipe_votes.vote(recipe=recipe, user=admin, version=version, works=True)
    for version in ("2.0.15", *(f"99.{number}" for number in range(9))):
        say(voter, recipe, version)
    shown = [version for version, *_ in counted(member)]
    assert len(shown) == recipe_votes.SHOWN_MOST
    assert {"2.0.15", "2.0.16"} <= set(shown)
    page = words(signed_in(member).get(PAGE).content.decode())
    assert "5 more versions have votes." in page
    assert "The votes are about the way round: does it help?" in page
    (hers,) = recipe_votes.published("opencode", other_member)
    assert (len(hers.tallies), hers.hidden) == (11, 0)  # her own are all there
