"""Whether a text of a member works for others, for each version of its client."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count
from django.utils import timezone
from django.utils.translation import gettext as _

from inference.docs import markup
from members import versions
from members.models import Recipe, RecipeEdit, RecipeVote, User
from members.recipes import Refused, no_version

EACH_MOST = 10
"""Versions that one member may vote about, for one text."""
SHOWN_MOST = 6
"""Versions on the page, besides those the reader has voted about. No admin reads them first, so a
few votes must not be able to fill it."""


def vote(*, recipe: Recipe, user: User, version: str, works: bool) -> None:
    """Hers for this version of the client; a second one replaces the first."""
    named = versions.plain(version)
    if not named:
        raise Refused(no_version())
    if recipe.pk in _written_by(user, [recipe]):
        raise Refused(_("This text is yours: others say whether it works for them."))
    with transaction.atomic():
        Recipe.objects.select_for_update().get(pk=recipe.pk)  # or two tabs could pass the limit
        others = RecipeVote.objects.filter(recipe=recipe, user=user).exclude(version=named)
        if others.count() >= EACH_MOST:
            raise Refused(_("You have voted about ten versions here; that is enough."))
        RecipeVote.objects.update_or_create(
            recipe=recipe,
            user=user,
            version=named,
            defaults={"works": works, "at": timezone.now()},
        )


@dataclass(kw_only=True)
class Tally:
    version: str
    works: int = 0
    fails: int = 0
    hers: bool | None = None
    """The reader's own vote: None if there is none."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    recipe: Recipe
    edit: RecipeEdit
    html: str
    tallies: Sequence[Tally]
    """The newest version first; with that of the text itself, even if nobody has voted."""
    hidden: int
    """Versions that have votes and are not among them."""
    is_hers: bool


def published(client: str, reader: User) -> list[Shown]:
    """Four queries, however many texts and votes. Problems first: they save the most time."""
    found = Recipe.objects.published().filter(client=client).select_related("current", "author")
    recipes = sorted(found, key=lambda recipe: (recipe.kind != Recipe.Kind.PROBLEM, -recipe.pk))
    written = _written_by(reader, recipes)
    tallies = _tallies(recipes, reader)
    return [
        _shown(recipe, recipe.current, tallies[recipe.pk], is_hers=recipe.pk in written)
        for recipe in recipes
        if recipe.current
    ]


def _shown(recipe: Recipe, edit: RecipeEdit, tallies: dict[str, Tally], *, is_hers: bool) -> Shown:
    kept = _most_spoken_of(tallies, edit.version)
    return Shown(
        recipe=recipe,
        edit=edit,
        html=markup.text(edit.body),
        tallies=kept,
        hidden=len(tallies) - len(kept),
        is_hers=is_hers,
    )


def _written_by(user: User, recipes: Sequence[Recipe]) -> set[int]:
    """With those that she, as an admin, put into other words."""
    begun = {recipe.pk for recipe in recipes if recipe.author_id == user.pk}
    edits = RecipeEdit.objects.filter(recipe__in=recipes, author=user)
    return begun | set(edits.values_list("recipe_id", flat=True))


def _tallies(recipes: Sequence[Recipe], reader: User) -> dict[int, dict[str, Tally]]:
    """By recipe and version."""
    found: dict[int, dict[str, Tally]] = defaultdict(dict)
    votes = RecipeVote.objects.filter(recipe__in=recipes)
    counts = votes.values_list("recipe_id", "version", "works").annotate(Count("pk")).order_by()
    for recipe, version, works, count in counts:
        tally = found[recipe].setdefault(version, Tally(version=version))
        setattr(tally, "works" if works else "fails", count)
    hers = votes.filter(user=reader).values_list("recipe_id", "version", "works")
    for recipe, version, works in hers:
        found[recipe][version].hers = works
    return found


def _most_spoken_of(tallies: dict[str, Tally], written_with: str) -> list[Tally]:
    own = versions.plain(written_with)
    if own:
        tallies.setdefault(own, Tally(version=own))

    def weight(tally: Tally) -> tuple[bool, int]:
        return tally.version == own, tally.works + tally.fails

    newest = sorted(tallies.values(), key=lambda tally: versions.order(tally.version), reverse=True)
    kept = sorted(newest, key=weight, reverse=True)[:SHOWN_MOST]
    return [tally for tally in newest if tally in kept or tally.hers is not None]
