"""One browser for all of these tests."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import chromium
from tests.browser.window import Open, Window
from tests.stack import Stack


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    # Playwright's event loop lives in this thread; Django would take it for async code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with chromium() as started:
        yield started
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def window(browser: Browser, stack: Stack) -> Iterator[Open]:
    """Opens windows; none may have complained in the end. What each showed last is kept."""
    opened: list[Window] = []

    def open_one(**options: Any) -> Window:
        context = browser.new_context(**{"locale": "en", **options})
        context.set_default_timeout(15_000)
        opened.append(Window(context, stack))
        return opened[-1]

    yield open_one
    complaints = [one.complaints.take() for one in opened]
    for number, one in enumerate(opened):
        one.page.screenshot(path=stack.state_dir / f"window-{number}.png")
        one.context.close()
    assert complaints == [[] for _ in opened]
