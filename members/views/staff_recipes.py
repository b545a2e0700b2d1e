"""Texts that wait for an admin to read them."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from inference.docs import markup, pages
from members import recipes
from members.models import RecipeEdit
from members.views.asking import attempt, person
from nan.access import staff_required

AT_ONCE = 20


@require_safe
@staff_required
@never_cache
def index(request: HttpRequest) -> HttpResponse:
    """The oldest first, as they will look; beside it what it replaces."""
    return _page(request)


def _page(request: HttpRequest, *, refused: int = 0, reason: str = "") -> HttpResponse:
    """`refused`: the edit whose reason was, and stays in its field."""
    found = Paginator(recipes.pending(), AT_ONCE)
    edits = [
        {
            "edit": edit,
            "client": pages.client_title(edit.recipe.client),
            "html": markup.text(edit.body),
            "before": _before(edit),
            "reason": reason if edit.pk == refused else "",
        }
        for edit in found.page(1).object_list
    ]
    context = {"edits": edits, "count": found.count}
    return render(request, "staff/recipes.html", context, status=422 if refused else 200)


def _before(edit: RecipeEdit) -> str:
    """What others read now, and will read no more."""
    before = edit.recipe.current
    return markup.text(before.body) if before else ""


@require_POST
@staff_required
@never_cache
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    actor, reason = person(request), request.POST.get("reason", "")
    if request.POST.get("action") == "accept":
        attempt(request, lambda: recipes.accept(edit=pk, actor=actor), _("Published."))
        return redirect("staff_recipes")
    done = attempt(
        request,
        lambda: recipes.decline(edit=pk, actor=actor, reason=reason),
        _("Declined. Its author sees your reason."),
    )
    return redirect("staff_recipes") if done else _page(request, refused=pk, reason=reason)
