"""What members write for each other about clients, and its review.

A text is a row (`Recipe`) with its edits; an edit is read by others once an admin has let it
through. Until then, and whatever becomes of it, the one before it stays.
"""

from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.html import strip_tags
from django.utils.translation import gettext as _

from inference.docs import markup
from members import versions
from members.models import Recipe, RecipeEdit, User
from nan import leaks, stale

PENDING_MOST = 10
State = RecipeEdit.State


class Refused(Exception):
    """Not possible, for a reason that the person who asked should read."""


class ChangedMeanwhile(Refused):
    """There is a newer edit than the one that her form was opened with."""


# -- Writing ------------------------------------------------------------------------------------
def write(*, user: User, client: str, kind: str, title: str, version: str, body: str) -> Recipe:
    """Waits for an admin before others see it. Sent again, as with Back, it waits once."""
    look_at_text(title, version, body)
    told = {"title": title, "version": _plain(version), "body": body}
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        waiting = RecipeEdit.objects.filter(
            author=user, state=State.PENDING, recipe__withdrawn_at=None
        )
        sent = waiting.filter(recipe__client=client, recipe__kind=kind, **told).first()
        if sent:
            return sent.recipe
        if waiting.count() >= PENDING_MOST:
            raise Refused(_("Ten of your texts wait for review already. Wait until one is read."))
        recipe = Recipe.objects.create(client=client, kind=kind, author=user)
        RecipeEdit.objects.create(recipe=recipe, author=user, **told)
    return recipe


def edit(
    *, recipe: Recipe, user: User, title: str, version: str, body: str, seen: str | None = None
) -> RecipeEdit:
    """In place of one that waits already; what is published stays until it is let through.

    `seen`: the mark of the edit that her form was opened with; None: nobody says.
    """
    look_at_text(title, version, body)
    version = _plain(version)
    with transaction.atomic():
        locked = Recipe.objects.select_for_update().get(pk=recipe.pk)
        if locked.withdrawn_at:
            raise Refused(
                _("This text was withdrawn, so yours is not kept. Copy it: it stands here still.")
            )
        if seen not in (None, mark(locked)):
            raise ChangedMeanwhile(
                _(
                    "Somebody saved this text after you opened it, perhaps you in another tab. "
                    "Yours was not kept; it stands here still, and below it what was saved. "
                    "Put together what you want to keep, then send it again."
                )
            )
        locked.edits.filter(state=State.PENDING).update(state=State.REPLACED)
        return RecipeEdit.objects.create(
            recipe=locked, author=user, title=title, version=version, body=body
        )


def mark(recipe: Recipe) -> str:
    """Of what a form shows of its newest edit."""
    newest = recipe.edits.first()
    return stale.digest(newest, ("title", "version", "body")) if newest else ""


def may_edit(recipe: Recipe, user: Any) -> bool:
    return bool(recipe.author_id == user.pk or (user.is_staff and user.is_active))


def withdraw(*, recipe: Recipe) -> None:
    """Nobody reads it any more; its history stays for the admins."""
    with transaction.atomic():
        open_ones = Recipe.objects.filter(pk=recipe.pk, withdrawn_at=None)
        if not open_ones.update(withdrawn_at=timezone.now()):
            raise Refused(_("This text was withdrawn."))
        recipe.edits.filter(state=State.PENDING).update(state=State.REPLACED)


def no_version() -> str:
    return _("A version is a number, such as 2.0.16 or 3.1-beta.2. Which one do you use?")


def _plain(version: str) -> str:
    """As votes about the same one are counted."""
    named = versions.plain(version)
    if not named:
        raise Refused(no_version())
    return named


def look_at_text(title: str, version: str, body: str) -> None:
    """As it is written, and as its readers see it: there the marks of Markdown are gone, which may
    stand in the middle of a key."""
    shown = strip_tags(markup.text(body))
    if not shown.strip():
        raise Refused(_("Nothing of this text would show. Write what a reader is to do."))
    look_for_keys(title, version, body, shown)


def look_for_keys(*texts: str) -> None:
    """Refuses the first that is found, with its beginning."""
    if told := leaks.complaint(*texts):
        raise Refused(told)


# -- Review -------------------------------------------------------------------------------------
def pending() -> Any:
    """The oldest first."""
    edits = RecipeEdit.objects.filter(state=State.PENDING, recipe__withdrawn_at=None)
    return edits.select_related("recipe__current", "recipe__author", "author").order_by("pk")


def accept(*, edit: int, actor: User) -> RecipeEdit:
    with transaction.atomic():
        decided = _decide(edit, actor, State.ACCEPTED)
        Recipe.objects.filter(pk=decided.recipe_id).update(current=decided)
    return decided


def decline(*, edit: int, actor: User, reason: str) -> RecipeEdit:
    if not reason.strip():
        raise Refused(_("Write a reason: its author will read it."))
    look_for_keys(reason)
    return _decide(edit, actor, State.DECLINED, reason.strip()[:500])


def _decide(edit: int, actor: User, state: str, reason: str = "") -> RecipeEdit:
    """Once: two admins at the same moment, or a newer edit, leave the second with a message."""
    waiting = RecipeEdit.objects.filter(pk=edit, state=State.PENDING, recipe__withdrawn_at=None)
    values = {"decided_by": actor, "decided_at": timezone.now(), "reason": reason}
    if not waiting.update(state=state, **values):
        raise Refused(_("This edit is not waiting any more. Look at the list again."))
    return RecipeEdit.objects.select_related("recipe").get(pk=edit)
