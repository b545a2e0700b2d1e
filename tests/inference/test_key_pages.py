"""The member's key pages: what they say, what they show once, what they never give away."""

import base64
import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import override
from pytest_django import DjangoAssertNumQueries, Settings

from inference import examples, keys, provisioning, reveal
from inference.models import Key, KeyHolder
from inference.status import glance, shelf
from members import membership
from members.models import Application, User
from tests.clients.running import code_of
from tests.fakes.gateway import FakeGateway, Manner
from tests.inference.conftest import advance, live
from tests.inference.status.conftest import api_stood
from tests.people import signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("client_of_fake")]

VALUE = re.compile(r"sk-[A-Za-z0-9_-]{43}")
PAGES = ["key", "key/status", "key/create", "key/reveal", "key/rotate", "key/pause"]
PAGES += ["key/resume", "key/revoke"]


@pytest.fixture
def browser(member: User) -> Client:
    return signed_in(member)


def text(response: HttpResponse) -> str:
    return " ".join(response.content.decode().split())


def make(browser: Client, user: User) -> None:
    """Opens the page, presses the button, and lets the worker work."""
    browser.get("/key/")
    assert browser.post("/key/create").status_code == 302
    advance(user)


def shown(response: HttpResponse) -> str:
    assert response.status_code == 200
    found = set(VALUE.findall(response.content.decode()))
    assert len(found) == 1
    return found.pop()


def test_from_the_button_to_the_key(browser: Client, member: User, fake: FakeGateway) -> None:
    assert "Create my key" in text(browser.get("/key/"))
    browser.post("/key/create")
    page = text(browser.get("/key/"))
    assert "being made" in page
    assert 'hx-trigger="every 1s"' in page
    assert '<noscript> <meta http-equiv="refresh" content="2"> </noscript>' in page
    (status,) = re.findall(r'hx-get="(/key/status\?shown=\w+)"', page)
    assert browser.get(status, headers={"HX-Request": "true"}).status_code == 204
    advance(member)
    fragment = text(browser.get(status, headers={"HX-Request": "true"}))
    assert "Show my key" in fragment
    assert "hx-trigger" not in fragment
    assert "<html" not in fragment
    value = shown(browser.post("/key/reveal"))
    assert fake.admits(value)
    page = text(browser.get("/key/"))
    assert f"sk-…{value[-4:]}" in page
    assert VALUE.findall(page) == []


def test_k10_the_key_is_shown_once_and_cached_nowhere(browser: Client, member: User) -> None:
    make(browser, member)
    first = browser.post("/key/reveal")
    value = shown(first)
    assert "no-store" in first["Cache-Control"]
    again = browser.post("/key/reveal", follow=True)
    for response in (again, browser.get("/key/"), browser.get("/key/reveal", follow=True)):
        assert value not in response.content.decode()
    assert value not in str(again.redirect_chain)


@pytest.mark.parametrize(
    ("states", "said"),
    [("uu", 0), ("ug", 1)],
)
def test_the_page_of_a_new_key_says_that_the_api_is_down(
    browser: Client,
    member: User,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    states: str,
    said: int,
) -> None:
    """Else she tries the key at once, and thinks that it is the key."""
    fresh = shelf.Shelf(tmp_path / "status.json", aside=lambda run, seconds: run())
    monkeypatch.setattr(shelf, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(glance, "shelf", fresh)
    make(browser, member)
    api_stood(states)
    page = text(browser.post("/key/reveal"))
    assert "Your new key" in page
    assert page.count("Requests are not answered: the gateway is down.") == said


@pytest.mark.parametrize("path", PAGES)
def test_k10_no_page_is_stored_by_a_browser(browser: Client, path: str) -> None:
    address = f"/{path}/" if path == "key" else f"/{path}"
    for response in (browser.get(address), browser.post(address)):
        if response.status_code != 405:
            assert "no-store" in response["Cache-Control"]


def test_k9_no_cookie_and_no_session_holds_the_key(browser: Client, member: User) -> None:
    make(browser, member)
    revealed = browser.post("/key/reveal")
    value = shown(revealed)
    cookies = [morsel.value for morsel in revealed.cookies.values()]
    cookies += [morsel.value for morsel in browser.cookies.values()]
    for cookie in cookies:
        assert value not in unquote(cookie)
        assert value.encode() not in decoded(cookie)
    for session in Session.objects.all():
        assert value not in str(session.get_decoded())


def decoded(cookie: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4))
    except ValueError:
        return b""


def test_the_cookie_is_short_lived_and_for_these_pages_only(browser: Client, member: User) -> None:
    browser.get("/key/")
    cookie = browser.post("/key/create").cookies["key_reveal"]
    assert (cookie["path"], cookie["httponly"], cookie["samesite"]) == ("/key/", True, "Lax")
    assert cookie["max-age"] == settings.REVEAL_SECONDS
    advance(member)
    gone = browser.post("/key/reveal").cookies["key_reveal"]
    assert (gone.value, gone["max-age"], gone["path"]) == ("", 0, "/key/")


def test_the_cookie_is_secure_on_https(browser: Client, settings: Settings) -> None:
    settings.HTTPS = True
    assert browser.get("/key/").cookies["key_reveal"]["secure"] is True


def test_clicks_of_one_page_share_the_pair(browser: Client, member: User) -> None:
    """Whichever answer the browser keeps, it can open the key."""
    browser.get("/key/")
    for _ in range(3):
        browser.post("/key/create")
    advance(member)
    shown(browser.post("/key/reveal"))


def test_the_second_browser_does_not_take_the_first_ones_place(
    browser: Client, member: User
) -> None:
    other = signed_in(member)
    browser.get("/key/")
    browser.post("/key/create")
    late = other.post("/key/create")
    assert "key_reveal" not in late.cookies
    advance(member)
    page = text(other.post("/key/reveal"))
    assert "Only the browser in which you asked for the key can open it" in page
    assert 'href="/key/rotate?at_once=1"' in page
    shown(browser.post("/key/reveal"))


def test_a_mangled_cookie_is_another_browser(browser: Client, member: User) -> None:
    make(browser, member)
    for mangled in ("x", "x" * 43, "é" * 43, "=" * 43):
        browser.cookies["key_reveal"] = mangled
        assert "Only the browser" in text(browser.post("/key/reveal"))


def test_redis_lost_what_it_kept(browser: Client, member: User) -> None:
    """It is told, and a replacement is offered."""
    make(browser, member)
    reveal._redis().flushdb()
    page = text(browser.get("/key/"))
    assert "This key was never shown" in page
    assert "Show my key" not in page
    assert 'href="/key/rotate?at_once=1"' in page
    browser.post("/key/rotate", {"at_once": "1"})
    advance(member)
    shown(browser.post("/key/reveal"))
    assert live(member) == [("active", 100, 5)]


def test_l4_fields_of_a_request_change_nothing(
    browser: Client, member: User, fake: FakeGateway
) -> None:
    wishes = {"rpm_limit": 9999, "max_parallel_requests": 99, "tpm_limit": 1, "models": "x"}
    wishes |= {"user_id": "someone", "own_rpm": 9999, "user": 1, "holder": "x", "public_key": "x"}
    browser.get("/key/")
    browser.post("/key/create", wishes)
    advance(member)
    [theirs] = fake.of(member.public_id)
    assert (theirs["rpm_limit"], theirs["max_parallel_requests"]) == (100, 5)
    assert theirs["tpm_limit"] is None
    browser.post("/key/rotate", wishes)
    advance(member)
    assert live(member) == [("active", 20, 1), ("active", 80, 4)]
    assert {key["user_id"] for key in fake.keys.values()} == {str(member.public_id)}


def test_replacing_with_overlap_shows_both(browser: Client, member: User) -> None:
    make(browser, member)
    old = shown(browser.post("/key/reveal"))
    assert "The old one works on for a day" in text(browser.get("/key/rotate"))
    browser.post("/key/rotate")
    advance(member)
    new = shown(browser.post("/key/reveal"))
    page = text(browser.get("/key/"))
    assert new != old
    assert f"sk-…{old[-4:]}" in page
    assert f"sk-…{new[-4:]}" in page
    assert "Replace with overlap" not in page
    assert "End the old key now?" in text(browser.get("/key/revoke?old_only=1"))
    ended = browser.post("/key/revoke", {"old_only": "1"}, follow=True)
    assert "You have ended the old key. It stops within a minute" in text(ended)
    advance(member)
    assert f"sk-…{old[-4:]}" not in text(browser.get("/key/"))
    assert live(member) == [("active", 100, 5)]


def test_pause_is_pending_until_the_gateway_confirms(
    browser: Client, member: User, fake: FakeGateway
) -> None:
    make(browser, member)
    fake.stop()
    browser.post("/key/pause")
    provisioning.advance(member.public_id)
    page = text(browser.get("/key/"))
    assert '<span class="badge wait">pausing</span>' in page
    assert "Until then the key still works" in page
    assert "The gateway does not answer right now" in page
    fake.start()
    advance(member)
    page = text(browser.get("/key/"))
    assert '<span class="badge">paused</span>' in page
    browser.post("/key/resume")
    assert '<span class="badge wait">resuming</span>' in text(browser.get("/key/"))
    advance(member)
    assert 'badge good">' in text(browser.get("/key/"))


def test_revoking_asks_first_and_is_pending_until_confirmed(
    browser: Client, member: User, fake: FakeGateway
) -> None:
    make(browser, member)
    assert "Yes, revoke it" in text(browser.get("/key/revoke"))
    assert live(member) == [("active", 100, 5)]
    page = text(browser.post("/key/revoke", follow=True))
    assert "You have revoked your key. It stops within a minute" in page
    assert "Until then it still works" in page
    advance(member)
    assert "You have no key yet" in text(browser.get("/key/"))


def test_k5_a_failure_has_words_and_a_button(
    browser: Client, member: User, fake: FakeGateway
) -> None:
    fake.misbehave("/key/generate", Manner.REFUSE)
    make(browser, member)
    page = text(browser.get("/key/"))
    assert "The gateway refused to make this key" in page
    assert "Try again" in page
    assert "4xx" not in page
    make(browser, member)
    shown(browser.post("/key/reveal"))


def test_the_page_tells_days_not_times(browser: Client, member: User) -> None:
    make(browser, member)
    assert "not yet" in text(browser.get("/key/"))
    day = timezone.now().date() - timedelta(days=40)
    Key.objects.update(last_used_on=day)
    with override("en"):
        expected = f"<dt>Last used</dt><dd>{date_format(day, 'DATE_FORMAT')}</dd>"
    assert expected in text(browser.get("/key/"))


def test_examples_are_ready_to_paste(browser: Client, member: User) -> None:
    make(browser, member)
    response = browser.post("/key/reveal")
    value, page = shown(response), response.content.decode()
    assert page.count("data-copy") >= 8
    assert page.count(settings.API_URL) == 8
    assert page.count(settings.PUBLIC_MODEL) >= 6
    assert page.count(value) == 3  # alone, in the line for the shell, in Claude Code's file
    shown_code = code_of(page)
    assert f"export NAN_API_KEY={value}" in shown_code.values()
    for source in examples.SOURCES:
        file = Client().get(f"/docs/examples/{source.page}/files/{source.file}").content.decode()
        assert settings.API_URL in file
        assert settings.PUBLIC_MODEL in file
        assert file.replace(examples.PLACEHOLDER, value).strip() in shown_code.values()


def test_a_live_key_always_has_its_examples(browser: Client, member: User) -> None:
    """Not at the one reveal only: she comes back weeks later to set up another tool."""
    assert "How to call it" not in text(browser.get("/key/"))
    make(browser, member)
    shown(browser.post("/key/reveal"))
    for change in ("rotate", "pause", "resume"):
        page = text(browser.get("/key/"))
        assert "How to call it" in page
        assert page.count(examples.PLACEHOLDER) == 3
        assert page.count(settings.API_URL) == 8
        browser.post(f"/key/{change}")
        advance(member)
    browser.post("/key/revoke")
    advance(member)
    assert "How to call it" not in text(browser.get("/key/"))


@pytest.mark.parametrize("path", PAGES)
def test_only_members_get_here(
    path: str, outsider: User, waiting: Application, member: User, admin: User
) -> None:
    """A4: nobody without a membership sees or makes a key, whatever route she takes."""
    address = f"/{path}/" if path == "key" else f"/{path}"
    for stranger in (outsider, waiting.user):
        for answer in (signed_in(stranger).get(address), signed_in(stranger).post(address)):
            assert answer.status_code in (403, 405)
    anonymous = Client().post(address)
    assert anonymous.status_code in (302, 405)
    suspended = signed_in(member)
    membership.suspend(membership=member.membership, actor=admin, reason="abuse")
    assert suspended.post(address).status_code in (302, 403, 405)
    assert KeyHolder.objects.filter(keys__isnull=False).count() == 0


def test_nobody_sees_or_changes_anothers_key(
    browser: Client, member: User, other_member: User, fake: FakeGateway
) -> None:
    make(browser, member)
    stranger = signed_in(other_member)
    hint = Key.objects.get().hint
    assert hint not in text(stranger.get("/key/"))
    assert stranger.post("/key/reveal").status_code == 302
    for path in ("pause", "revoke", "resume"):
        stranger.post(f"/key/{path}")
    advance(member)
    assert live(member) == [("active", 100, 5)]
    shown(browser.post("/key/reveal"))


def test_a_change_needs_the_form_token(member: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(member, "allauth.account.auth_backends.AuthenticationBackend")
    for path in ("create", "rotate", "pause", "resume", "revoke", "reveal"):
        assert browser.post(f"/key/{path}").status_code == 403
    assert Key.objects.count() == 0


def test_too_many_keys_are_refused_in_words(
    browser: Client, member: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "NEW_KEYS_A_DAY", 1)
    make(browser, member)
    page = browser.post("/key/rotate", {"at_once": "1"}, follow=True)
    assert "You have made many keys today" in text(page)
    assert live(member) == [("active", 100, 5)]


def test_queries_do_not_grow_with_past_keys(
    browser: Client,
    member: User,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for _ in range(3):
        make(browser, member)
        browser.post("/key/rotate", {"at_once": "1"})
        advance(member)
    with django_assert_max_num_queries(6):
        browser.get("/key/")


def test_moving_page_of_someone_signed_out_loads_anew(outsider: User) -> None:
    """htmx would put the sign-in page into the middle of the key page."""
    for browser in (Client(), signed_in(outsider)):
        answer = browser.get("/key/status?shown=before", headers={"HX-Request": "true"})
        assert (answer.headers.get("HX-Refresh"), answer.content) == ("true", b"")
