"""Fifty applications on one page: what decides about them is always in sight."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from inference.models import Server
from members.models import Application, Membership, User
from tests.browser.chromium import Complaints, too_wide
from tests.browser.test_skin import sign_in
from tests.people import staff
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
HEIGHT = 740
BOX = "[name=application]"
ABOVE = """() => document.activeElement.getBoundingClientRect().bottom
    <= document.querySelector('.action-bar').getBoundingClientRect().top"""


@pytest.fixture(params=[(360, True), (1280, True), (1280, False)])
def page(
    request: pytest.FixtureRequest, browser: Browser, live_server: LiveServer
) -> Iterator[Page]:
    """The waitlist with sixty people, at the width of a phone and a desk; once without scripts."""
    width, scripts = request.param
    Server.objects.create(name="gpu-1", seats=1000)
    users = User.objects.bulk_create([User(email=f"p{n}@example.org") for n in range(60)])
    told = "A radio for the valley, with a scheduler and a transcript of each programme. " * 2
    Application.objects.bulk_create([Application(user=user, builds=told) for user in users])
    window = {"width": width, "height": HEIGHT}
    context = browser.new_context(locale="en", viewport=window, java_script_enabled=scripts)
    sign_in(context, live_server, staff("Alma"))
    page = context.new_page()
    complaints = Complaints(page)
    page.goto(f"{live_server.url}/staff/waitlist/")
    yield page
    assert complaints.take() == []
    context.close()


def test_actions_stay_in_sight(page: Page) -> None:
    approve, reject = page.locator("[value=approve]"), page.locator("#reject summary")
    for number in (0, 25, 49):
        box = page.locator(BOX).nth(number)
        box.check()
        expect(approve).to_be_in_viewport(ratio=1)
        expect(reject).to_be_in_viewport(ratio=1)
    bar = page.locator(".action-bar").bounding_box()
    assert bar
    assert bar["height"] < HEIGHT / 5
    reject.click()
    expect(page.locator("[value=reject]")).to_be_visible()
    assert page.locator(".action-bar").bounding_box()["height"] < HEIGHT
    approve.click()
    expect(page.locator(".messages")).to_contain_text("3 people approved.")
    assert Membership.objects.count() == 0  # nobody has confirmed her address
    assert Application.objects.filter(state="approved").count() == 3


def test_counts_what_is_ticked(page: Page) -> None:
    if page.locator("#ticked").is_hidden():
        expect(page.locator("[data-choose-all]")).to_be_hidden()
        return
    status = page.locator("#ticked")
    expect(status).to_have_text("Nobody ticked")
    page.locator(BOX).first.check()
    expect(status).to_have_text("1 person ticked")
    page.click("[data-choose-all]")
    expect(status).to_have_text("50 people ticked")
    page.click("#reject summary")
    expect(page.locator("[value=reject]")).to_have_text("Reject 50 people")
    assert too_wide(page) == []
    page.click("[data-choose-all]")
    expect(page.locator("[value=reject]")).to_have_text("Reject")
    page.get_by_role("link", name="Next", exact=True).click()
    expect(page.locator(BOX)).to_have_count(10)


def test_a_focused_row_is_not_behind_the_bar(page: Page) -> None:
    page.locator(BOX).first.focus()
    for _ in range(24):
        page.keyboard.press("Tab")
        wait_until(lambda: page.evaluate(ABOVE), seconds=2, what="the row to be above the bar")
