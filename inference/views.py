"""The member's key pages. No address holds an id: each shows and changes the reader's own key.

Every page is `no-store`. The private half of the pair that opens a new key lives in a cookie of
these pages only; the page that offers to make a key sets it, so that several clicks share it.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from nacl.public import PrivateKey

from inference import examples, keys, reveal
from inference.docs.values import reading
from inference.errors import words
from inference.key_page import KeyPage
from inference.models import Key
from inference.names.shown import of_slot
from inference.status import glance
from nan.access import HtmxRequest, has_member_access, loads_anew_without, member_required

COOKIE = "key_reveal"


@require_safe
@never_cache
@member_required
def key_page(request: HttpRequest) -> HttpResponse:
    page = KeyPage.of(request.user)
    now = reading()
    model = of_slot(now.chat)
    context = {
        "page": page,
        "model": model,
        "examples": examples.filled(examples.PLACEHOLDER, now),
        "placeholder": examples.PLACEHOLDER,
        "silent": glance.silent(name=model.name),
    }
    response = render(request, "inference/key.html", context)
    if page.offers_creation:
        _set_cookie(response, _private_key(request))
    return response


@require_safe
@never_cache
@loads_anew_without(has_member_access)
@member_required
def key_status(request: HtmxRequest) -> HttpResponse:
    """The part of the page that moves; asks again by itself while something is under way.

    While nothing has changed there is nothing to swap: focus stays, no screen reader speaks.
    """
    if not request.htmx:
        return redirect("key")
    page = KeyPage.of(request.user)
    if request.GET.get("shown") == page.fingerprint:
        return HttpResponse(status=204)
    return render(request, "inference/key.html#status", {"page": page})


@require_POST
@never_cache
@member_required
def key_create(request: HttpRequest) -> HttpResponse:
    return _with_new_key(
        request, lambda public_key: keys.request_key(user=request.user, public_key=public_key)
    )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@member_required
def key_rotate(request: HttpRequest) -> HttpResponse:
    at_once = request.POST.get("at_once", request.GET.get("at_once")) == "1"
    if request.method != "POST":
        context = {"page": KeyPage.of(request.user), "at_once": at_once}
        return render(request, "inference/key_rotate.html", context)
    return _with_new_key(
        request,
        lambda public_key: keys.rotate(
            user=request.user, public_key=public_key, actor=request.user, at_once=at_once
        ),
    )


@require_POST
@never_cache
@member_required
def key_pause(request: HttpRequest) -> HttpResponse:
    keys.pause(user=request.user, actor=request.user)
    return redirect("key")


@require_POST
@never_cache
@member_required
def key_resume(request: HttpRequest) -> HttpResponse:
    keys.resume(user=request.user, actor=request.user)
    return redirect("key")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@member_required
def key_revoke(request: HttpRequest) -> HttpResponse:
    old_only = request.POST.get("old_only", request.GET.get("old_only")) == "1"
    if request.method != "POST":
        context = {"page": KeyPage.of(request.user), "old_only": old_only}
        return render(request, "inference/key_revoke.html", context)
    change = keys.end_overlap if old_only else keys.revoke
    change(user=request.user, actor=request.user)
    messages.info(request, _revoked(old_only=old_only))
    return redirect("key")


def _revoked(*, old_only: bool) -> str:
    """Not "done": the gateway has yet to hear of it, and this page shows when it has."""
    if old_only:
        return _("You have ended the old key. It stops within a minute and is then deleted.")
    return _("You have revoked your key. It stops within a minute and is then deleted.")


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@member_required
def key_reveal(request: HttpRequest) -> HttpResponse:
    """Shows the key, once: reloading or going back finds nothing to show any more."""
    if request.method != "POST":
        return redirect("key")
    page = KeyPage.of(request.user)
    if page.current is None or not page.can_be_shown:
        return redirect("key")
    try:
        value = _take(request, page.current)
    except reveal.RevealUnavailable as error:
        messages.error(request, words(error.code).member)
        return redirect("key")
    except reveal.WrongBrowser:
        return render(request, "inference/key_elsewhere.html", {"page": page})
    if value is None:
        return render(request, "inference/key_elsewhere.html", {"page": page, "gone": True})
    Key.objects.filter(pk=page.current.pk).update(revealed_at=timezone.now())
    now = reading()
    model = of_slot(now.chat)
    context = {
        "key": value,
        "model": model,
        "examples": examples.filled(value, now),
        "silent": glance.silent(name=model.name),
    }
    response = render(request, "inference/key_reveal.html", context)
    response.delete_cookie(COOKIE, path=reverse("key"), samesite="Lax")
    return response


def _take(request: HttpRequest, key: Key) -> str | None:
    private_key = reveal.from_cookie(request.COOKIES.get(COOKIE))
    if private_key is None:
        raise reveal.WrongBrowser
    return reveal.take(key.id, key.token, private_key)


def _with_new_key(request: HttpRequest, change: Callable[[bytes], Key]) -> HttpResponse:
    """Runs `change` with this browser's public half.

    Only the call whose half went into the row gives the browser the other one: of several clicks
    at once, one wins, and the others must not overwrite its cookie.
    """
    private_key = _private_key(request)
    public_key = bytes(private_key.public_key)
    response = redirect("key")
    try:
        key = change(public_key)
    except keys.KeyRefused as error:
        messages.error(request, words(error.code).member)
        return response
    if bytes(key.public_key) == public_key:
        _set_cookie(response, private_key)
    return response


def _private_key(request: HttpRequest) -> PrivateKey:
    return reveal.from_cookie(request.COOKIES.get(COOKIE)) or reveal.new_private_key()


def _set_cookie(response: HttpResponse, private_key: PrivateKey) -> None:
    options: dict[str, Any] = {"httponly": True, "samesite": "Lax", "secure": settings.HTTPS}
    response.set_cookie(
        COOKIE,
        reveal.to_cookie(private_key),
        max_age=settings.REVEAL_SECONDS,
        path=reverse("key"),
        **options,
    )
