"""Members write recipes and known problems, and say whether those of others worked for them."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from inference.docs import markup, pages
from members import recipe_votes, recipes
from members.models import Recipe, RecipeEdit
from members.recipe_forms import EditForm, RecipeForm
from members.views.asking import attempt, person
from members.views.community import community
from nan import stale

FORM_METHODS = ["GET", "HEAD", "POST"]


@require_safe
@community
def mine(request: HttpRequest) -> HttpResponse:
    """Hers, with what became of each edit."""
    found = Recipe.objects.filter(author=person(request), withdrawn_at=None)
    rows = found.select_related("current").prefetch_related("edits")
    shown = [(recipe, pages.client_title(recipe.client)) for recipe in rows]
    return render(request, "docs/mine.html", {"recipes": shown})


@require_http_methods(FORM_METHODS)
@community
def write(request: HttpRequest, name: str) -> HttpResponse:
    page = pages.find(name, guide=False)
    if page is None:
        raise Http404
    form = RecipeForm(request.POST or None, initial={"kind": request.GET.get("kind", "recipe")})
    if _wants_to_save(request, form):
        try:
            recipes.write(user=person(request), client=name, **form.cleaned_data)
        except recipes.Refused as refusal:
            form.add_error(None, str(refusal))
        else:
            messages.success(request, _("Thank you. An admin reads it before others see it."))
            return redirect("docs_mine")
    return _form_page(request, form, page)


@require_http_methods(FORM_METHODS)
@community
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """What was saved after she opened the form is not saved over unseen: she is shown it, and the
    next form has seen it."""
    recipe, seen = _of_hers(request, pk), request.POST.get(stale.FIELD)
    if recipe.withdrawn_at and request.method != "POST":
        raise Http404
    form = EditForm(request.POST or None, initial=_newest(recipe))
    more: dict[str, Any] = {"recipe": recipe, "seen": seen or recipes.mark(recipe)}
    if _wants_to_save(request, form):
        try:
            recipes.edit(recipe=recipe, user=person(request), seen=seen, **form.cleaned_data)
        except recipes.ChangedMeanwhile as refusal:
            form.add_error(None, str(refusal))
            more |= {"seen": recipes.mark(recipe), "saved": _newest(recipe)}
        except recipes.Refused as refusal:
            form.add_error(None, str(refusal))
        else:
            messages.success(request, _("Kept. An admin reads it before others see it."))
            return redirect("docs_mine")
    return _form_page(request, form, pages.find(recipe.client, guide=False), **more)


def _newest(recipe: Recipe) -> dict[str, str]:
    newest = recipe.edits.first()
    if newest is None:
        return {}
    return {"title": newest.title, "version": newest.version, "body": newest.body}


def _wants_to_save(request: HttpRequest, form: EditForm) -> bool:
    return request.method == "POST" and request.POST.get("action") != "preview" and form.is_valid()


def _form_page(
    request: HttpRequest, form: EditForm, page: pages.Page | None, **more: Any
) -> HttpResponse:
    wants_preview = request.POST.get("action") == "preview"
    context = {"form": form, "page": page, **more, **(_preview(request) if wants_preview else {})}
    refused = form.is_bound and not form.is_valid() and not wants_preview
    return render(request, "docs/write.html", context, status=422 if refused else 200)


def _preview(request: HttpRequest) -> dict[str, str]:
    """How it will look; of a text with a key in it, what sending it would say."""
    title, version, body = (request.POST.get(name, "") for name in ("title", "version", "body"))
    try:
        recipes.look_at_text(title[:100], version[:40], body[:8000])
    except recipes.Refused as refusal:
        return {"refusal": str(refusal)}
    return {"preview": markup.text(body[:8000])}


def _of_hers(request: HttpRequest, pk: int) -> Recipe:
    recipe = get_object_or_404(Recipe, pk=pk)
    if not recipes.may_edit(recipe, request.user):
        raise Http404
    return recipe


@require_safe
@community
def history(request: HttpRequest, pk: int) -> HttpResponse:
    """What was published, the newest first; with what was not, for its author and admins."""
    recipe = get_object_or_404(Recipe.objects.select_related("current"), pk=pk)
    hers = recipes.may_edit(recipe, request.user)
    if not hers and (recipe.withdrawn_at or recipe.current is None):
        raise Http404
    edits = recipe.edits.select_related("author", "decided_by")
    if not hers:
        edits = edits.filter(state=RecipeEdit.State.ACCEPTED)
    shown = [(one, markup.text(one.body)) for one in edits]
    page = pages.find(recipe.client, guide=False)
    context = {"recipe": recipe, "edits": shown, "page": page, "hers": hers}
    return render(request, "docs/history.html", context)


@require_POST
@community
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    recipe = _of_hers(request, pk)
    attempt(request, lambda: recipes.withdraw(recipe=recipe), _("Withdrawn."))
    return redirect("docs_mine")


@require_POST
@community
def vote(request: HttpRequest, pk: int) -> HttpResponse:
    """`works`: yes or no, for the version that she names or chooses."""
    recipe, user = get_object_or_404(Recipe.objects.published(), pk=pk), person(request)
    version, works = request.POST.get("version", ""), request.POST.get("works") == "yes"
    attempt(
        request,
        lambda: recipe_votes.vote(recipe=recipe, user=user, version=version, works=works),
        _("Thank you: that helps the next one."),
    )
    return redirect(f"{reverse('docs_example', args=[recipe.client])}#text-{recipe.pk}")
