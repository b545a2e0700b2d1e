"""Account and public pages in a real browser: axe, phone width, both themes, both languages."""

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext, expect
from pytest_django.live_server_helper import LiveServer

from members.models import User
from tests.browser.chromium import Complaints, look, virtual_passkey
from tests.pages.test_pages import ACCOUNT, SIGNED_OUT
from tests.people import PASSWORD, person, signed_in

pytestmark = pytest.mark.django_db(transaction=True)
FROM = {"X-Forwarded-For": "192.0.2.7"}  # the edge would set it


@pytest.fixture
def ana() -> User:
    """Has no language of her own: the browser's counts."""
    user = person("Ana")
    user.language = ""
    user.save()
    return user


def sign_in(context: BrowserContext, server: LiveServer, user: User) -> None:
    name = settings.SESSION_COOKIE_NAME
    value = signed_in(user).cookies[name].value
    context.add_cookies([{"name": name, "value": value, "url": server.url}])


@pytest.mark.parametrize(
    ("language", "theme", "width"),
    [("es", "light", 1280), ("es", "dark", 360), ("en", "dark", 1280), ("en", "light", 360)],
)
def test_no_page_has_a_fault(
    browser: Browser, live_server: LiveServer, ana: User, language: str, theme: str, width: int
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=theme,
        locale=language,
        extra_http_headers=FROM,
    )
    page = context.new_page()
    complaints = Complaints(page)
    paths = [*SIGNED_OUT, "/nowhere/"]
    found = {path: look(page, live_server.url + path, complaints) for path in paths}
    sign_in(context, live_server, ana)
    found |= {path: look(page, live_server.url + path, complaints) for path in ACCOUNT}
    context.close()
    assert {path: faults for path, faults in found.items() if faults} == {}


def test_passkey_is_added_and_then_signs_in(
    browser: Browser, live_server: LiveServer, ana: User
) -> None:
    context = browser.new_context(locale="en", extra_http_headers=FROM)
    page = context.new_page()
    complaints = Complaints(page)
    virtual_passkey(page, verifies=True)
    sign_in(context, live_server, ana)
    page.goto(f"{live_server.url}/accounts/2fa/webauthn/add/")
    page.fill("[name=password]", PASSWORD)
    page.click("main form .button")
    page.fill("[name=name]", "Laptop")
    page.check("[name=passwordless]")
    page.click("#mfa_webauthn_add")
    expect(page.locator("h1")).to_have_text("Recovery Codes")
    page.get_by_role("button", name="Sign out").click()
    page.goto(f"{live_server.url}/accounts/login/")
    page.click("#passkey_login")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    assert complaints.take() == []
    context.close()


def test_refused_passkey_is_said_in_words(
    browser: Browser, live_server: LiveServer, ana: User
) -> None:
    context = browser.new_context(locale="en", extra_http_headers=FROM)
    page = context.new_page()
    virtual_passkey(page, verifies=False)
    page.goto(f"{live_server.url}/accounts/login/")
    page.click("#passkey_login")
    expect(page.get_by_role("alert")).to_contain_text("The passkey was not used")
    context.close()


def test_theme_is_remembered_and_returns_to_the_system(
    browser: Browser, live_server: LiveServer
) -> None:
    context = browser.new_context(locale="en", color_scheme="light", extra_http_headers=FROM)
    page = context.new_page()
    page.goto(live_server.url)
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Dark").click()
    page.reload()
    assert page.evaluate(background) != light
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate("localStorage.getItem('theme')") is None
    assert page.evaluate(background) == light
    context.close()


def test_copy_button_copies_the_code(browser: Browser, live_server: LiveServer) -> None:
    context = browser.new_context(locale="en", extra_http_headers=FROM)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(live_server.url)
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator(".code pre").inner_text().rstrip("\n")
    context.close()


def test_htmx_may_post(browser: Browser, live_server: LiveServer) -> None:
    """The CSRF token goes along as a header, by an attribute of <body>."""
    context = browser.new_context(locale="es", extra_http_headers=FROM)
    page = context.new_page()
    page.goto(live_server.url)
    with page.expect_response("**/i18n/setlang/") as sent:
        page.evaluate("htmx.ajax('POST', '/i18n/setlang/', {values: {language: 'en'}})")
    assert sent.value.status < 400
    page.reload()
    assert page.locator("html").get_attribute("lang") == "en"
    context.close()


def test_works_without_javascript(browser: Browser, live_server: LiveServer) -> None:
    context = browser.new_context(locale="en", java_script_enabled=False, extra_http_headers=FROM)
    page = context.new_page()
    page.goto(f"{live_server.url}/privacy/")
    assert page.locator("#theme-toggle").is_visible() is False
    page.get_by_role("button", name="Español").click()
    assert page.url == f"{live_server.url}/privacy/"
    assert page.locator("html").get_attribute("lang") == "es"
    context.close()
