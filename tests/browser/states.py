"""Rows for every state in which a page looks different, and the address of each page."""

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.core import signing
from django.utils import timezone
from nacl.public import PrivateKey
from playwright.sync_api import Page

from inference import reveal
from inference.models import (
    Alert,
    CatalogModel,
    FleetEvent,
    Key,
    KeyEvent,
    KeyHolder,
    ProbeResult,
    ProbeRun,
    PublicName,
    Replica,
    Server,
    Slot,
    Swap,
)
from members import mails, membership, waitlist
from members.models import (
    Application,
    Decision,
    Mail,
    MembershipEvent,
    Proposal,
    Recipe,
    User,
    Vote,
)
from members.views.people import GOODBYE
from nan import devmail
from tests.browser.docs_states import docs_views
from tests.browser.fleet_states import fleet_views
from tests.browser.home_states import home_views
from tests.browser.status_states import status_views
from tests.browser.usage_states import usage_views
from tests.browser.view import View, click, open_all
from tests.browser.vote_states import vote_views
from tests.pages.test_pages import ACCOUNT, SECOND_FACTOR, SECURITY_KEY, SIGNED_OUT
from tests.people import applicant, let_in, person, staff

SECRET = "sk-abcdefghijklmnopqrstuvwx7Qf2"
PAIR = PrivateKey(bytes(range(32)))
ERRORS = ["400", "403", "403_csrf", "404", "429", "500", "503"]


# -- The waitlist ----------------------------------------------------------------------------------


def waitlist_views(admin: User) -> Iterator[View]:
    def view(state: str, user: User, then: Callable[[Page], None] | None = None) -> View:
        return View(f"waitlist, {state}", "/waitlist/", user, then)

    yield view("none", person("Olga"))
    yield view("refused form", person("Olivia"), click("main form .button"))
    yield view("pending", applicant("Petra").user, open_all)
    asked = applicant("Quima")
    waitlist.ask(application=asked.pk, actor=admin, question="Which licence?\nAnd who uses it?")
    yield view("needs information", asked.user)
    answered = applicant("Rosa")
    waitlist.ask(application=answered.pk, actor=admin, question="Which licence?")
    waitlist.answer(application=answered, text="AGPL, for everyone.")
    yield view("answered", answered.user)
    yield view("rejected", rejected("Sara", admin).user)
    withdrawn = applicant("Tania")
    waitlist.withdraw(application=withdrawn)
    yield view("withdrawn", withdrawn.user)
    yield view("approved, not confirmed", let_in(applicant("Ursula", confirmed=False), by=admin))
    yield view("member", let_in(applicant("Vera"), by=admin))
    yield View("home of one who waits", "/", asked.user)
    yield View("key, not a member", "/key/", withdrawn.user)


def rejected(name: str, admin: User) -> Application:
    application = applicant(name)
    waitlist.reject(applications=[application.pk], actor=admin, reason_code="capacity")
    Decision.objects.filter(application=application).update(final_at=timezone.now())
    return application


# -- Keys --------------------------------------------------------------------------------------


def holder_of(user: User, **fields: Any) -> KeyHolder:
    return KeyHolder.objects.create(owner_ref=user.public_id, member=user, **fields)


def key(holder: KeyHolder, state: str = "active", **fields: Any) -> Key:
    now = timezone.now()
    hint = fields.pop("hint", "7Qf2")
    made = {} if state == "requested" else {"active_at": now, "hint": hint, "rpm": 100}
    made |= {} if state == "requested" else {"parallel": 5, "token": uuid.uuid4().hex * 2}
    shown = {"revealed_at": now} if state != "requested" else {}
    return Key.objects.create(holder=holder, state=state, **{**made, **shown, **fields})


def key_views(admin: User) -> Iterator[View]:
    numbers = count(1)

    def view(state: str, then: Callable[[Page], None] | None = None, **fields: Any) -> View:
        user = let_in(applicant(f"Key{next(numbers)}"), by=admin)
        of = holder_of(user, **fields)
        STATES[state](of)
        return View(f"key, {state}", "/key/", user, then)

    yield view("none")
    yield view("making")
    yield view("making, trouble", error_code="unreachable")
    yield view("failed")
    yield view("never seen")
    yield view("removing")
    yield view("pausing", paused=True)
    yield view("paused", paused=True)
    yield view("resuming")
    yield view("stopped", held=True)
    rotating = view("rotating")
    yield rotating
    yield View("key, end the old one", "/key/revoke?old_only=1", rotating.who)
    live = view("live", own_rpm=1500)
    yield live
    yield View("key, replace", "/key/rotate", live.who)
    yield View("key, replace at once", "/key/rotate?at_once=1", live.who)
    yield View("key, revoke", "/key/revoke", live.who)
    ready = view("ready")
    yield ready
    # Without a cookie: another browser. With it: the key.
    reveals = click('form[action="/key/reveal"] button')
    yield View("key, another browser", "/key/", ready.who, reveals)
    yield View(REVEALED, "/key/", ready.who, reveals)


REVEALED = "key, revealed"


def failed(holder: KeyHolder) -> None:
    key(holder, "failed", error_code="refused")


def ready(holder: KeyHolder) -> None:
    token = hashlib.sha256(SECRET.encode()).hexdigest()
    row = key(holder, token=token, revealed_at=None, public_key=bytes(PAIR.public_key))
    reveal.leave(row.id, token, SECRET, bytes(PAIR.public_key))


def rotating(holder: KeyHolder) -> None:
    end = timezone.now() + timedelta(hours=23)
    key(holder, hint="OLD1", outgoing=True, remove_at=end, rpm=20, parallel=1)
    key(holder, rpm=80, parallel=4)


STATES: dict[str, Callable[[KeyHolder], object]] = {
    "none": lambda holder: None,
    "making": lambda holder: key(holder, "requested"),
    "making, trouble": lambda holder: key(holder, "requested"),
    "failed": failed,
    "never seen": lambda holder: key(holder, revealed_at=None),
    "removing": lambda holder: key(holder, remove_at=timezone.now()),
    "pausing": key,
    "paused": lambda holder: key(holder, "blocked"),
    "resuming": lambda holder: key(holder, "blocked"),
    "stopped": lambda holder: key(holder, "blocked"),
    "rotating": rotating,
    "live": lambda holder: key(holder, rpm=1500, last_used_on=timezone.localdate()),
    "ready": ready,
}


# -- The account -------------------------------------------------------------------------------


def account_views(admin: User) -> Iterator[View]:
    member = let_in(applicant("Nuria"), by=admin)
    EmailAddress.objects.create(user=member, email="nuria@example.net")
    yield View("account", "/account/", member)
    yield View("account, address changing", "/accounts/email/", member)
    yield View("leave", "/account/leave/", member)

    def wrong_address(page: Page) -> None:
        page.fill("[name=email]", "somebody@example.org")
        page.click("main form .button.danger")

    yield View("leave, wrong address", "/account/leave/", member, wrong_address)
    row = let_in(applicant("Sonia"), by=admin).membership
    for name, pk in (("goodbye, done", None), ("goodbye, pending", row.pk)):
        yield View(name, f"/goodbye/{signing.dumps(pk, salt=GOODBYE)}/")


def accounts_views() -> Iterator[View]:
    """allauth's pages, of someone without a second factor and of someone with all of them."""
    plain, secured = person("Paula"), staff("Silvia")
    RecoveryCodes.activate(secured)
    passkey = Authenticator.objects.create(
        user=secured, type="webauthn", data=json.loads(SECURITY_KEY.read_text())
    )
    yield from (View(path, path, plain) for path in ACCOUNT)
    for path in SECOND_FACTOR:
        yield View(f"{path} with all", path.format(key=passkey.pk), secured)


# -- Staff -------------------------------------------------------------------------------------


def staff_views(admin: User) -> Iterator[View]:
    yield View("staff without a second factor", "/staff/", person("Nadia", is_staff=True))
    outsider = User.objects.get(email="olga@example.org")
    yield View("staff, for an outsider", "/staff/", outsider)
    late_mails(outsider)
    again = waitlist.apply(user=rejected("Zoe", admin).user, **answers())
    unconfirmed = applicant("Yolanda", confirmed=False)
    suspended = let_in(applicant("Xenia"), by=admin)
    membership.suspend(membership=suspended.membership, actor=admin, reason="Sold her key.")
    limited = User.objects.get(email="nuria@example.org").membership
    yield View("staff", "/staff/", admin)
    yield View("staff, waitlist", "/staff/waitlist/", admin, open_all)
    yield View("staff, waitlist, nobody", "/staff/waitlist/?q=nobody", admin)
    yield View("staff, waitlist, rejected", "/staff/waitlist/?state=rejected", admin)
    yield View("staff, applicant", f"/staff/waitlist/{unconfirmed.pk}/", admin, open_all)
    yield View("staff, applicant again", f"/staff/waitlist/{again.pk}/", admin)
    yield View("staff, members", "/staff/members/", admin)
    yield View("staff, members, nobody", "/staff/members/?q=nobody", admin)
    yield View("staff, member", f"/staff/members/{limited.pk}/", admin)
    yield View("staff, suspended", f"/staff/members/{suspended.membership.pk}/", admin)

    def no_reason(page: Page) -> None:
        page.eval_on_selector('form[action$="/suspend/"]', "form => form.noValidate = true")
        page.click('form[action$="/suspend/"] .button')

    yield View("staff, no reason", f"/staff/members/{limited.pk}/", admin, no_reason)

    def approve_two(page: Page) -> None:
        for box in page.locator("[name=application]:enabled").all()[:2]:
            box.check()
        page.click("[value=approve]")

    yield View("staff, no seats", "/staff/waitlist/", admin, approve_two)


def answers() -> dict[str, Any]:
    long = "A radio for the valley, with a scheduler and a transcript of each programme. " * 4
    return {"builds": long, "clients": ["zed"], "tokens_per_day": "to-10m"}


def late_mails(user: User) -> None:
    for state, fields in (("due", {"attempts": 2, "error": "unreachable"}), ("unsure", {})):
        Mail.objects.create(
            user=user,
            to=user.email,
            kind=mails.Kind.WELCOME,
            language="es",
            state=state,
            dedupe=state,
            **fields,
        )


ROWS = (User, Application, Decision, Mail, MembershipEvent, Key, KeyHolder, KeyEvent)
VOTE_ROWS = (Proposal, Vote)
DOCS_ROWS = (Recipe, ProbeRun, ProbeResult)
FLEET_ROWS = (CatalogModel, Slot, Replica, Swap, PublicName, FleetEvent, Alert)


def rows_views(admin: User, kinds: tuple[Any, ...]) -> Iterator[View]:
    """Django's admin: each list, and a row of each kind."""
    for model in kinds:
        name = f"{model._meta.app_label}/{model._meta.model_name}"
        yield View(f"rows, {name}", f"/admin/{name}/", admin)
        row = model.objects.first()
        yield View(f"row, {name}", f"/admin/{name}/{row.pk}/change/", admin)


def server_rows_views(admin: User) -> Iterator[View]:
    """The only rows here that are added by hand."""
    yield View("rows", "/admin/", admin)
    yield View("rows, new server", "/admin/inference/server/add/", admin)
    server = Server.objects.create(name="gpu-9", seats=4)
    yield View("row, server without engines", f"/admin/inference/server/{server.pk}/change/", admin)


# -- All -------------------------------------------------------------------------------------------


def mail_views() -> Iterator[View]:
    path = devmail.write(devmail.mail_folder(), MAIL.encode())
    yield View("mails", "/dev/mail/")
    yield View("mail", f"/dev/mail/{path.stem}/")


MAIL = """\
From: NaN <hello@localhost>
To: olga@example.org
Subject: Confirm your address
Date: Tue, 10 Nov 2026 10:00:00 +0100
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary=part

--part
Content-Type: text/plain; charset=utf-8

Open http://localhost/accounts/confirm-email/a-rather-long-key-that-does-not-wrap-by-itself/
--part
Content-Type: text/html; charset=utf-8

<p>Open <a href="http://localhost/">the link</a>.</p>
--part--
"""


def people_views() -> list[View]:
    admin = staff("Alma")
    Server.objects.create(name="gpu-1", seats=4)
    return [
        *(View(f"error {name}", f"/error/{name}/") for name in ERRORS),
        *(View(path, path) for path in SIGNED_OUT),
        *accounts_views(),
        *waitlist_views(admin),
        *key_views(admin),
        *account_views(admin),
        *staff_views(admin),
        *rows_views(admin, ROWS),
        *mail_views(),
    ]


def all_fleet_views() -> list[View]:
    admin = staff("Alma")
    return [
        *fleet_views(admin, staff("Bruna")),
        *rows_views(admin, FLEET_ROWS),
        *server_rows_views(admin),
    ]


def all_vote_views() -> list[View]:
    admin = staff("Alma")
    return [*vote_views(admin, staff("Bruna")), *rows_views(admin, VOTE_ROWS)]


def all_docs_views() -> list[View]:
    admin = staff("Alma")
    return [*docs_views(admin), *rows_views(admin, DOCS_ROWS)]


PARTS: dict[str, Callable[[], list[View]]] = {
    "people": people_views,
    "fleet": all_fleet_views,
    "usage": usage_views,
    "votes": all_vote_views,
    "docs": all_docs_views,
    "status": status_views,
    "home": home_views,
}
