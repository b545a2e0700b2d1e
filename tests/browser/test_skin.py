"""What only a browser can tell of the site's frame: passkeys, theme, copying, keyboard."""

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from members.models import User
from tests.browser.chromium import Complaints, virtual_passkey
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


FOCUSED = """() => {
    const at = document.activeElement
    const style = getComputedStyle(at)
    const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2
    const box = at.getBoundingClientRect()
    return [(at.getAttribute('name') || at.textContent).trim(), seen && box.top >= 0]
}"""


def tab_through(page: Page, count: int) -> list[str]:
    """What Tab reaches, in order; each must be seen to have the focus."""
    reached = []
    for _ in range(count):
        page.keyboard.press("Tab")
        name, seen = page.evaluate(FOCUSED)
        assert seen, f"focus can't be seen on {name!r}"
        reached.append(name)
    return reached


def test_sign_up_by_keyboard(browser: Browser, live_server: LiveServer) -> None:
    context = browser.new_context(locale="en", extra_http_headers=FROM, reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{live_server.url}/privacy/")
    assert tab_through(page, 4) == ["Skip to content", "NaN", "Sign in", "Sign up"]
    page.keyboard.press("Enter")
    page.wait_for_url("**/signup/")
    page.evaluate("document.activeElement.blur()")
    tab_through(page, 1)
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    reached = tab_through(page, 4)
    assert [name for name in reached if name in {"email", "password1", "Sign Up"}] == [
        "email",
        "password1",
        "Sign Up",
    ]
    context.close()


def test_key_page_by_keyboard(browser: Browser, live_server: LiveServer, member: User) -> None:
    context = browser.new_context(locale="en", extra_http_headers=FROM, reduced_motion="reduce")
    page = context.new_page()
    sign_in(context, live_server, member)
    page.goto(f"{live_server.url}/key/")
    reached = tab_through(page, 12)
    pages = ["Key", "Usage", "Votes", "Docs", "Account"]
    assert reached[:7] == ["Skip to content", "NaN", *pages]
    assert "Create my key" in reached
    page.get_by_role("button", name="Create my key").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("progressbar")).to_be_visible()
    context.close()


def test_no_flash_of_the_other_theme(browser: Browser, live_server: LiveServer) -> None:
    """A remembered theme stands when the page is first painted, whatever the system's is."""
    context = browser.new_context(locale="en", color_scheme="light", extra_http_headers=FROM)
    context.add_init_script(
        "localStorage.setItem('theme', 'dark');"
        "requestAnimationFrame(() => { window.first = document.documentElement.dataset.theme })"
    )
    page = context.new_page()
    page.goto(live_server.url)
    assert page.evaluate("window.first") == "dark"
    context.close()
