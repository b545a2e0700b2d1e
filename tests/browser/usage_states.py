"""Rows for every state of the usage pages."""

import uuid
from collections.abc import Iterator
from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page

from inference.models import Key, KeyHolder, Usage, UsageDay, UsageLook
from inference.usage.figures import today
from members.models import User
from tests.browser.view import View, click
from tests.people import applicant, let_in, staff

DAYS = 100


def usage_views() -> list[View]:
    return list(_views())


def _views() -> Iterator[View]:
    admin = staff("Ugo")
    fresh = let_in(applicant("Ulla"), by=admin)
    yield View("usage, no key", "/usage/", fresh)
    member = let_in(applicant("Una"), by=admin)
    holder = KeyHolder.objects.create(owner_ref=member.public_id, member=member)
    _use(holder, _key(holder, state="deleted", hint="a8_K"), _key(holder))
    UsageDay.objects.create(day=today(), read_at=timezone.now())
    yield View("usage, 7 days", "/usage/?days=7", member)
    yield View("usage, 90 days", "/usage/?days=90", member)
    yield View("home of a member", "/", member)
    path = f"/staff/usage/{holder.pk}/"
    yield View("staff, usage", "/staff/usage/", admin)
    yield View("staff, usage, why", path, admin)
    yield View("staff, usage, no reason", path, admin, _no_reason)
    yield _opened(holder, admin)
    yield View("usage, opened by an admin", "/usage/", member)


def _key(holder: KeyHolder, *, state: str = "active", hint: str = "7Qf2") -> Key:
    limits = {"rpm": 100, "parallel": 5} if state == "active" else {}
    token = uuid.uuid4().hex * 2
    return Key.objects.create(holder=holder, state=state, hint=hint, token=token, **limits)


def _use(holder: KeyHolder, old: Key, new: Key) -> None:
    Usage.objects.bulk_create(
        Usage(
            day=today() - timedelta(days=n),
            holder=holder,
            key=new if n < DAYS // 20 else old,
            model=model,
            requests=40 * (n % 7) + 3,
            prompt_tokens=size * (n % 7) * 9_000 + 800,
            cached_tokens=size * (n % 7) * 7_000,
            completion_tokens=size * (n % 5) * 1_100,
            refused_rpm=12 * (n % 3),
            refused_parallel=n % 2,
            failed=n % 11 == 0,
        )
        for n in range(DAYS)
        if n % 6
        for model, size in (("nan", 30), ("qwen3-coder-480b-a35b-instruct", 4))
    )


def _opened(holder: KeyHolder, admin: User) -> View:
    reason = "Wrote that her calls of Tuesday are missing."
    look = UsageLook.objects.create(holder=holder, actor=admin, reason=reason)
    return View("staff, usage of one", f"/staff/usage/looks/{look.pk}/", admin)


def _no_reason(page: Page) -> None:
    page.eval_on_selector("main form", "form => form.noValidate = true")
    click("main form .button")(page)
