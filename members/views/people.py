"""Pages of a person who is, or wants to be, a member."""

import json
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.core import signing
from django.forms import model_to_dict
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from members import membership, personal_data, waitlist
from members.forms import AnswerForm, ApplicationForm, LeaveForm, ProfileForm
from members.models import Application, Membership, User
from members.views.asking import attempt, person
from nan.access import login_required

GOODBYE = "members.goodbye"


def privacy(request: HttpRequest) -> HttpResponse:
    return render(request, "privacy.html")


# -- The waitlist -----------------------------------------------------------------------------
@login_required
@never_cache
def waitlist_page(request: HttpRequest) -> HttpResponse:
    """Her entry, whatever its state; POST applies, or changes what she wrote."""
    user = person(request)
    application = waitlist.latest(user)
    current = application if application and application.is_open else None
    form = ApplicationForm(request.POST or None, instance=current, initial=_earlier(application))
    if request.method == "POST" and form.is_valid():
        data, done = form.cleaned_data, _("Saved. You are on the waitlist.")
        attempt(request, lambda: _save(user, current, data), done)
        return redirect("waitlist")
    return render(request, "members/waitlist.html", _waitlist_context(user, application, form))


def _earlier(application: Application | None) -> dict[str, Any]:
    """What she wrote the last time, so that whoever applies again need not write it anew."""
    return model_to_dict(application, ApplicationForm.Meta.fields) if application else {}


def _save(user: User, current: Application | None, answers: dict[str, Any]) -> Application:
    if current:
        return waitlist.edit(application=current, **answers)
    return waitlist.apply(user=user, **answers)


def _waitlist_context(
    user: User, application: Application | None, form: ApplicationForm
) -> dict[str, Any]:
    undecided = bool(application and waitlist.undecided(application))
    waiting = bool(application and (application.is_open or undecided))
    decision = waitlist.who_decided([application]).get(application.pk) if application else None
    return {
        "application": application,
        "waiting": waiting,
        "undecided": undecided,
        "band": waitlist.place(application) if application and waiting else None,
        "decision": decision,
        "form": form,
        "answer_form": AnswerForm(),
        "may_apply": not user.is_member and not waiting and not _approved(application),
    }


def _approved(application: Application | None) -> bool:
    return bool(application and application.state == Application.State.APPROVED)


@login_required
@require_POST
def waitlist_answer(request: HttpRequest) -> HttpResponse:
    form = AnswerForm(request.POST)
    application = waitlist.latest(person(request))
    if application and form.is_valid():
        attempt(
            request,
            lambda: waitlist.answer(application=application, text=form.cleaned_data["answer"]),
            _("Thank you. You keep your place."),
        )
    return redirect("waitlist")


@login_required
@require_POST
def waitlist_withdraw(request: HttpRequest) -> HttpResponse:
    application = waitlist.latest(person(request))
    if application:
        attempt(
            request,
            lambda: waitlist.withdraw(application=application),
            _("Withdrawn. You can apply again whenever you like."),
        )
    return redirect("waitlist")


# -- The account ------------------------------------------------------------------------------
@login_required
@never_cache
def account(request: HttpRequest) -> HttpResponse:
    user = person(request)
    form = ProfileForm(
        request.POST or None,
        instance=user,
        initial={"language": user.language or translation.get_language()},
    )
    if request.method == "POST" and form.is_valid():
        form.save()
        with translation.override(user.language):
            messages.success(request, _("Saved."))
        response = redirect("account")
        response.set_cookie(settings.LANGUAGE_COOKIE_NAME, user.language, samesite="Lax")
        return response
    context = {"form": form, "membership": getattr(user, "membership", None)}
    return render(request, "members/account.html", context)


@login_required
@never_cache
def export(request: HttpRequest) -> HttpResponse:
    """Everything we hold about her, as one JSON file."""
    data = personal_data.export(user=person(request))
    body = json.dumps(data, indent=2, ensure_ascii=False, default=str)
    response = HttpResponse(body, content_type="application/json")
    name = f"nan-{timezone.localdate():%Y-%m-%d}.json"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@login_required
@never_cache
def leave(request: HttpRequest) -> HttpResponse:
    user = person(request)
    form = LeaveForm(request.POST or None, user=user)
    if request.method == "POST" and form.is_valid():
        if user.is_staff:
            messages.error(request, _("You are staff: another admin has to take that back first."))
            return redirect("account_leave")
        left = membership.leave(user=user)
        logout(request)
        token = signing.dumps(left.pk if left else None, salt=GOODBYE)
        return redirect("goodbye", token=token)
    return render(request, "members/leave.html", {"form": form})


@never_cache
def goodbye(request: HttpRequest, token: str) -> HttpResponse:
    """What became of her data and keys: pending until the gateway has confirmed."""
    try:
        pk = signing.loads(token, salt=GOODBYE, max_age=30 * 24 * 3600)
    except signing.BadSignature:
        raise Http404 from None
    pending = bool(pk) and Membership.objects.filter(pk=pk, user__isnull=False).exists()
    return render(request, "members/goodbye.html", {"pending": pending})
