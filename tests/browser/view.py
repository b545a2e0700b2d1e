"""A page in one state, as one person sees it."""

from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page

from members.models import User


@dataclass(frozen=True)
class View:
    """A page as one person sees it; `then` goes on from there, by what she clicks."""

    name: str
    path: str
    who: User | None = None
    then: Callable[[Page], None] | None = None


def click(selector: str) -> Callable[[Page], None]:
    return lambda page: page.click(selector)


def open_all(page: Page) -> None:
    page.eval_on_selector_all("main details", "all => all.forEach(one => { one.open = true })")
