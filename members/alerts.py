"""Telling admins of the fleet's alerts: by mail when one opens, by the webhook also when it closes.

`inference` opens and closes the rows. A storm is one mail: an alert waits some seconds for company,
and one that opens soon after a mail waits for the next, unless it is urgent.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from allauth.account.models import EmailAddress
from django.conf import settings
from django.db import transaction
from django.db.models import F, Max, Q, QuerySet
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from inference.fleet.words import words
from inference.models import Alert
from inference.staff import alert_words
from members import mails
from members.models import User
from members.webhook import NotDelivered, Unsure, Webhook

log = structlog.get_logger(__name__)

COMPANY = timedelta(seconds=10)
APART = timedelta(minutes=5)
"""Between two mails about alerts to the same people."""
URGENT = ("slot_down", "api_down")
"""Members are not answered. These were a minute in coming and don't flap: they wait for nobody."""
BACK_OFF_SECONDS = (15, 60, 300, 900, 3600)
HOOK_ATTEMPTS = 12
HOOKS_AT_ONCE = 4
"""In one run of the task: with a timeout of five seconds each it stays under half a minute."""


def admins() -> "QuerySet[User]":
    """Whose confirmed address it is; an address that nobody proved gets no news of the fleet."""
    proven = EmailAddress.objects.filter(verified=True).values("email")
    return User.objects.filter(is_staff=True, is_active=True, email__in=proven).order_by("pk")


# -- By mail ----------------------------------------------------------------------------------
def mail_admins(now: datetime | None = None) -> int:
    """How many alerts were put into mails. With no admin to write to, they wait for one."""
    now = now or timezone.now()
    with transaction.atomic():
        waiting = Alert.objects.filter(closed_at=None, mailed_at=None)
        rows = list(waiting.select_for_update(skip_locked=True, of=("self",)).order_by("opened_at"))
        if not rows or not _time_to_write(rows, now):
            return 0
        people = list(admins())
        if not people:
            return 0
        mails.alerts(people, rows)
        ids = [row.pk for row in rows]
        Alert.objects.filter(pk__in=ids).update(mailed_at=now)
    log.info("admins_told", alerts=len(rows), admins=len(people))
    return len(rows)


def _time_to_write(rows: list[Alert], now: datetime) -> bool:
    if any(row.code in URGENT for row in rows):
        return True
    last = Alert.objects.aggregate(last=Max("mailed_at"))["last"]
    return rows[0].opened_at <= now - COMPANY and (last is None or last <= now - APART)


@dataclass(frozen=True)
class Told:
    """An alert in words of the current language."""

    what: str
    about: str
    detail: str
    since: datetime
    link: str


def told(ids: Iterable[int]) -> list[Told]:
    """Those that are still open."""
    rows = _whole(Alert.objects.filter(pk__in=list(ids), closed_at=None))
    return [in_words(row) for row in rows.order_by("opened_at")]


def in_words(alert: Alert) -> Told:
    return Told(
        what=str(words(alert.code)),
        about=_about(alert),
        detail=alert_words.remark(alert),
        since=alert.opened_at,
        link=settings.SITE_URL + alert_words.page(alert),
    )


def _whole(alerts: "QuerySet[Alert]") -> "QuerySet[Alert]":
    return alerts.select_related(
        "server", "slot", "replica__server", "replica__slot", "swap__slot", "swap__to_model"
    )


def _about(alert: Alert) -> str:
    if alert.swap:
        return _("swap of %(slot)s to %(model)s") % {
            "slot": alert.swap.slot.name,
            "model": alert.swap.to_model.name,
        }
    if alert.replica:
        return _("replica %(name)s of %(slot)s") % {
            "name": str(alert.replica),
            "slot": alert.replica.slot.name,
        }
    if alert.server:
        return _("server %(name)s") % {"name": alert.server.name}
    return _("slot %(name)s") % {"name": alert.slot.name} if alert.slot else ""


# -- By the webhook ---------------------------------------------------------------------------
def _to_hook(now: datetime) -> "QuerySet[Alert]":
    """Opened and not told; or told as open, and closed since. What nobody heard of ends quietly."""
    opened = Q(closed_at=None, hooked=Alert.Hooked.NOTHING)
    closed = Q(closed_at__isnull=False, hooked=Alert.Hooked.OPEN)
    return Alert.objects.filter(opened | closed, hook_due_at__lte=now)


def call_webhook(now: datetime | None = None) -> int:
    """How many it has heard of in this run. Nothing to do where none is set."""
    if not settings.ALERT_WEBHOOK_URL:
        return 0
    now = now or timezone.now()
    with Webhook(settings.ALERT_WEBHOOK_URL) as hook:
        due = _whole(_to_hook(now)).order_by("hook_due_at", "pk")[:HOOKS_AT_ONCE]
        return sum(_call(hook, alert, now) for alert in due)


def _call(hook: Webhook, alert: Alert, now: datetime) -> bool:
    """The state counts as told before it is sent: a worker that dies meanwhile tells nothing
    twice. It is taken back where the other side certainly has nothing."""
    before, state = alert.hooked, Alert.Hooked.CLOSED if alert.closed_at else Alert.Hooked.OPEN
    ours = Alert.objects.filter(pk=alert.pk, hooked=before, hook_due_at=alert.hook_due_at)
    if not ours.update(hooked=state, hook_attempts=F("hook_attempts") + 1):
        return False
    outcome: dict[str, Any] = {"hook_attempts": 0}
    try:
        hook.post(message(alert, state))
    except Unsure:
        log.warning("webhook_unsure", alert=alert.pk, state=state)
    except NotDelivered as failure:
        log.warning("webhook_not_delivered", alert=alert.pk, state=state, error=failure.code)
        if failure.again and alert.hook_attempts + 1 < HOOK_ATTEMPTS:
            wait = BACK_OFF_SECONDS[min(alert.hook_attempts, len(BACK_OFF_SECONDS) - 1)]
            outcome = {"hooked": before, "hook_due_at": now + timedelta(seconds=wait)}
    Alert.objects.filter(pk=alert.pk, hooked=state).update(**outcome)
    return "hooked" not in outcome


def message(alert: Alert, state: str) -> dict[str, str]:
    """In the site's first language. `text` alone is a message that can be shown as it is."""
    with translation.override(settings.LANGUAGE_CODE):
        said = in_words(alert)
        sign = _("Over") if state == Alert.Hooked.CLOSED else _("Alert")
        parts = [f"{sign}: {said.what}", said.about, said.detail]
    return {
        "text": " · ".join(part for part in parts if part),
        "code": alert.code,
        "about": said.about,
        "since": alert.opened_at.isoformat(),
        "url": said.link,
        "state": state,
    }
