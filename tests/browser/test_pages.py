"""Every page in every state that looks different, in a real browser.

With SCREENSHOTS=folder, pictures of all of them are left there.
"""

import os
import re
from pathlib import Path

import pytest
from allauth.account.internal.flows.login import record_authentication
from django.conf import settings as site
from django.http import HttpRequest
from playwright.sync_api import Browser, BrowserContext, Error, Page
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from inference import reveal
from inference.views import COOKIE
from members.models import User
from tests.browser.chromium import BY_LOOK, Complaints, faults_of, too_wide, violations
from tests.browser.states import PAIR, PARTS, REVEALED
from tests.browser.view import View
from tests.people import signed_in

pytestmark = pytest.mark.django_db(transaction=True)
LOOKS = [("light", 1280), ("dark", 360)], [("dark", 1280), ("light", 360)]
PICTURES = os.environ.get("SCREENSHOTS")


@pytest.fixture
def views(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> list[View]:
    """Of the part that the test asks for."""
    settings.ROOT_URLCONF = "tests.browser.urls"
    settings.EMAIL_FILE_PATH = str(tmp_path)
    return PARTS[request.param]()


def show(context: BrowserContext, page: Page, server: LiveServer, view: View) -> None:
    """Goes to the page as the one who sees it."""
    context.clear_cookies()
    cookies = {site.SESSION_COOKIE_NAME: session(view.who)} if view.who else {}
    if view.name == REVEALED:
        cookies[COOKIE] = reveal.to_cookie(PAIR)
    context.add_cookies([{"name": n, "value": v, "url": server.url} for n, v in cookies.items()])
    page.goto(server.url + view.path)
    if view.then:
        view.then(page)
        page.wait_for_load_state("load")


def session(user: User) -> str:
    """Of someone who has just typed her password again, so that nothing asks her for it."""
    client = signed_in(user)
    request = HttpRequest()
    request.session = client.session
    record_authentication(request, user, "password", reauthenticated=True)
    request.session.save()
    return client.cookies[site.SESSION_COOKIE_NAME].value


@pytest.mark.parametrize("views", PARTS, indirect=True)
@pytest.mark.parametrize(("language", "looks"), [("es", LOOKS[0]), ("en", LOOKS[1])])
def test_no_page_has_a_fault(
    browser: Browser,
    live_server: LiveServer,
    views: list[View],
    language: str,
    looks: list[tuple[str, int]],
) -> None:
    User.objects.update(language=language)
    # Without transitions: they would still be on their way when the theme has just changed.
    context = browser.new_context(locale=language, reduced_motion="reduce")
    page = context.new_page()
    complaints = Complaints(page)
    found: dict[str, list[str]] = {}
    for view in views:
        try:
            found |= look(page, live_server, view, language, looks, complaints)
        except Error as error:
            error.add_note(view.name)
            raise
    context.close()
    lines = [f"{name}: {fault}" for name, faults in found.items() for fault in faults]
    assert not lines, "\n".join(lines)


def look(
    page: Page,
    server: LiveServer,
    view: View,
    language: str,
    looks: list[tuple[str, int]],
    complaints: Complaints,
) -> dict[str, list[str]]:
    """Loads the page once; the second look only changes theme and width."""
    found = {}
    for number, (theme, width) in enumerate(looks):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 800})
        name = f"{view.name} {language} {theme} {width}"
        if number == 0:
            show(page.context, page, server, view)
            faults = faults_of(page, language=language)
        else:
            faults = [*violations(page, BY_LOOK), *too_wide(page)]
        found[name] = [*faults, *complaints.take()]
        picture(page, name)
    return found


def picture(page: Page, name: str) -> None:
    if PICTURES:
        file = Path(PICTURES) / f"{re.sub('[^a-z0-9]+', '-', name)}.png"
        page.screenshot(path=file, full_page=True)
