"""The usage page on a phone."""

import pytest
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from tests.browser.test_skin import sign_in
from tests.browser.usage_states import usage_views

pytestmark = pytest.mark.django_db(transaction=True)
RIGHT_EDGES = """() => {
    const bars = [...document.querySelectorAll('.chart .hit')];
    const box = document.querySelector('.chart').parentElement.getBoundingClientRect();
    return [bars.at(-1).getBoundingClientRect().right, box.right, box.left];
}"""
SCALES = """() => {
    const box = (text) => text.getBoundingClientRect();
    const texts = (name) => [...document.querySelectorAll(`${name} .axis`)];
    const marks = (name) => texts(name).map((t) => [t.textContent, Math.round(box(t).top)]);
    return [marks('.scale'), marks('.chart'), box(texts('.scale')[0]).left];
}"""


def on_a_phone(browser: Browser, live_server: LiveServer, days: int) -> Page:
    member = next(view.who for view in usage_views() if view.path == "/usage/?days=90")
    context = browser.new_context(locale="en", viewport={"width": 360, "height": 740})
    sign_in(context, live_server, member)
    page = context.new_page()
    page.goto(f"{live_server.url}/usage/?days={days}")
    return page


@pytest.mark.parametrize("days", [7, 90])
def test_the_chart_begins_with_today(browser: Browser, live_server: LiveServer, days: int) -> None:
    page = on_a_phone(browser, live_server, days)
    newest, right, left = page.evaluate(RIGHT_EDGES)
    assert left < newest <= right
    page.context.close()


def test_the_scale_stays_in_sight_beside_the_newest_days(
    browser: Browser, live_server: LiveServer
) -> None:
    page = on_a_phone(browser, live_server, 90)
    beside, own, left = page.evaluate(SCALES)
    assert beside == own
    assert left >= 0
    page.set_viewport_size({"width": 1280, "height": 740})
    assert not page.locator(".scale").is_visible()
    page.context.close()
