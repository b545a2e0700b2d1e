"""The main journey as people live it: two browser windows on the whole running product."""

import re
from typing import Any

from playwright.sync_api import expect

from tests.api import ApiClient
from tests.browser.window import Open, Window, at, code_of
from tests.stack import Stack
from tests.visitor import ANSWERS, PASSWORD, members
from tests.waiting import wait_until

HER = "wanda@example.org"
FIFTY = "fifty"

MAKE_FIFTY = f"""
from allauth.account.models import EmailAddress
from inference.models import Server
from members import seats, waitlist
from members.models import User

Server.objects.create(name="gpu-wide", seats=500)
seats.changed()
for number in range(50):
    user = User.objects.create(email=f"{FIFTY}{{number}}@example.org", language="en")
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    waitlist.apply(user=user, **{ANSWERS!r})
"""
COUNT_FIFTY = f"""
from members.models import Membership
print(Membership.objects.filter(state="active", user__email__startswith="{FIFTY}").count())
"""
# The time in which an admin may change her mind, over before it would be.
LET_TIME_PASS = """
from django.utils import timezone
from members.models import Decision, Mail

Decision.objects.filter(undone_at=None).update(final_at=timezone.now())
Mail.objects.filter(state="due").update(due_at=timezone.now())
"""


def answers(stack: Stack, key: str) -> int:
    return ApiClient(stack.api, key).call().status_code


def refused(stack: Stack, key: str) -> None:
    wait_until(lambda: answers(stack, key) == 401, seconds=60, what="the key to be refused")


# -- Chapters --------------------------------------------------------------------------------------


def sign_up(her: Window) -> None:
    her.open("/")
    her.sees("Open models on servers that we share")
    her.follow("Sign up")
    her.fill(email=HER, password1=PASSWORD)
    her.press("Sign Up")
    her.stack.mail(HER, about="confirm")
    her.open("/dev/mail/")
    her.page.locator("tr", has_text=HER).get_by_role("link").click()
    her.page.locator(".mail-text a[href*=confirm-email]").click()
    her.press("Confirm my address")


def apply(her: Window) -> None:
    her.sees("Apply for a seat")
    her.fill(builds=str(ANSWERS["builds"]), referred_by="Ada")
    her.page.get_by_label("opencode").check()
    her.press("Apply")
    her.sees("You are on the waitlist")
    her.sees("among the next")


def become_staff(admin: Window) -> None:
    """Signs in with what the stack printed, and sets up the second factor that staff pages ask."""
    printed = (admin.stack.state_dir / "run.log").read_text()
    found = re.search(r"First admin: (\S+)\s+Password: +(\S+)", printed)
    assert found, "the stack printed no first admin"
    admin.open("/staff/waitlist/")
    admin.sign_in(found[1], found[2])
    admin.sees("Staff pages need a second factor")
    admin.follow("Activate")
    admin.fill(password=found[2])  # what is sensitive asks for it again
    admin.press("Confirm")
    secret = admin.page.locator("#authenticator_secret").input_value()
    admin.fill(code=code_of(secret))
    admin.press("Activate")
    admin.open("/staff/")
    admin.sees("Overview")


def read_and_approve(admin: Window, her: Window) -> None:
    admin.open("/staff/")
    admin.page.locator("main").get_by_role("link", name="Waitlist").click()
    admin.fill(q=HER)
    admin.press("Show")
    expect(admin.page.locator("tr[data-row]")).to_have_count(1)
    admin.follow(HER)
    admin.sees("knitting patterns")
    admin.page.go_back()
    press_keys(admin, "ja")
    admin.press("Undo")
    admin.sees("1 decision undone.")
    her.open("/waitlist/")
    her.sees("You are on the waitlist")
    press_keys(admin, "jxa")
    her.open("/waitlist/")
    her.sees("You are a member")


def press_keys(admin: Window, keys: str) -> None:
    admin.page.wait_for_load_state("load")
    for key in keys:
        admin.page.keyboard.press(key)
    expect(admin.page.get_by_role("button", name="Undo").first).to_be_visible()


def approve_fifty(admin: Window) -> None:
    admin.open(f"/staff/waitlist/?q={FIFTY}")
    admin.press("Tick all")
    admin.page.locator("[value=approve]").click()
    admin.sees("(50)")
    assert admin.stack.python(COUNT_FIFTY).split()[-1] == "50"


def come_in(her: Window) -> None:
    her.sign_out()
    her.stack.python(LET_TIME_PASS)
    mail = her.stack.mail(HER, about="your seat is ready")
    found = re.search(rf"{her.stack.site}\S+", mail)
    assert found
    her.open(found[0])
    her.sign_in(HER, PASSWORD)


def create_key(her: Window) -> str:
    her.press("Create my key")
    key = show_key(her)
    her.press("Copy")
    expect(her.page.get_by_role("button", name="Copied")).to_be_visible()
    assert her.page.evaluate("navigator.clipboard.readText()") == key
    return key


def show_key(her: Window) -> str:
    her.sees_button("Show my key")
    her.press("Show my key")
    key = her.page.locator("#new-key").inner_text()
    assert answers(her.stack, key) == 200
    return key


def replace_key(her: Window, old: str) -> str:
    her.open("/key/")
    her.follow("Replace with overlap")
    her.press("Yes, replace it")
    new = show_key(her)
    assert answers(her.stack, old) == 200
    her.follow("I have copied it")
    her.follow("End it now")
    her.press("Yes, end it")
    refused(her.stack, old)
    return new


def pause_and_resume(her: Window, key: str) -> None:
    her.open("/key/")
    her.press("Pause")
    her.sees("paused", seconds=60)
    refused(her.stack, key)
    her.press("Resume")
    her.sees_button("Pause")
    wait_until(lambda: answers(her.stack, key) == 200, seconds=60, what="the key to work again")


def revoke(her: Window, key: str) -> None:
    her.open("/key/")
    her.follow("Revoke")
    her.press("Yes, revoke it")
    her.sees("You have no key yet", seconds=60)
    refused(her.stack, key)


def suspend(admin: Window, her: Window) -> None:
    her.open("/account/")
    admin.open(f"/staff/members/?q={HER}")
    admin.follow(HER)
    admin.fill(reason="Sold her key.")  # both forms of the page have one
    suspension = admin.page.locator("form[action$='/suspend/']")
    suspension.locator("[name=reason]").fill("Sold her key.")
    suspension.get_by_role("button").click()
    admin.sees("suspended")
    her.page.get_by_role("banner").get_by_role("link", name="Key").click()
    assert her.page.url.startswith(f"{her.stack.site}/accounts/login/")


# -- Stories ---------------------------------------------------------------------------------------


def test_from_the_first_visit_to_the_last(window: Open, stack: Stack) -> None:
    her = window(permissions=["clipboard-read", "clipboard-write"])
    admin = window()
    stack.python(MAKE_FIFTY)
    sign_up(her)
    apply(her)
    become_staff(admin)
    read_and_approve(admin, her)
    approve_fifty(admin)
    come_in(her)
    key = create_key(her)
    her.shows_nowhere(key)
    key = replace_key(her, key)
    pause_and_resume(her, key)
    revoke(her, key)
    suspend(admin, her)


def test_key_never_travels_in_a_cookie_and_is_shown_once(window: Open, stack: Stack) -> None:
    """Cases K9 and K10, with a browser's own memory."""
    her = member_at(window, stack)
    her.press("Create my key")
    key = show_key(her)
    her.shows_nowhere(key)
    assert her.cookies_hold(key) == []


def test_key_pages_without_javascript(window: Open, stack: Stack) -> None:
    her = member_at(window, stack, java_script_enabled=False)
    her.press("Create my key")
    key = show_key(her)
    key = replace_key(her, key)
    pause_and_resume(her, key)
    revoke(her, key)


def member_at(window: Open, stack: Stack, **options: Any) -> Window:
    """A window on the key page of someone who has just been let in."""
    (person,) = members(stack, 1)
    her = at(window, person, **options)
    her.open("/key/")
    return her
