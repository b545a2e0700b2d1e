"""Runs with Django inside a stack's settings: the people that a measurement needs, as JSON.

Verbs: admin | applicants N | seats N | fill N | years N | passes N | forget. Called through
`tests.bench.inside`.
"""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.contrib.sessions.backends.db import SessionStore
from django.db import transaction

from inference.models import Server
from members import membership, waitlist
from members.models import User
from tests.bench import counting, crowd, usage_rows

BACKEND = "allauth.account.auth_backends.AuthenticationBackend"
DOMAIN = "bench.invalid"
ANSWERS = {"builds": crowd.BUILDS, "clients": ["opencode"], "tokens_per_day": "to-10m"}


def session(user: User) -> str:
    """As if she had just signed in, with her second factor where she has one."""
    store = SessionStore()
    store["_auth_user_id"] = str(user.pk)
    store["_auth_user_backend"] = BACKEND
    store["_auth_user_hash"] = user.get_session_auth_hash()
    store.create()
    return str(store.session_key)


def person(name: str, **fields: Any) -> User:
    """Without a password: hashing two hundred of them takes a minute."""
    user = User.objects.create_user(f"{name}@{DOMAIN}", None, language="en", **fields)
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user


def admin() -> dict[str, Any]:
    user = User.objects.filter(email=f"admin@{DOMAIN}").first()
    if user is None:
        user = person("admin", is_staff=True, is_superuser=True)
        TOTP.activate(user, generate_totp_secret())
    return {"session": session(user)}


@transaction.atomic
def applicants(count: int) -> list[dict[str, Any]]:
    begin = User.objects.count()
    return [_applicant(f"a{begin + number}") for number in range(count)]


def _applicant(name: str) -> dict[str, Any]:
    user = person(name)
    application = waitlist.apply(user=user, **ANSWERS)
    return {
        "application": application.pk,
        "owner": str(user.public_id),
        "session": session(user),
    }


def seats(count: int) -> None:
    Server.objects.update_or_create(name="bench", defaults={"seats": count})


def fill(count: int) -> dict[str, Any]:
    """`count` people in all; sessions to see the pages with, and the queries of each page."""
    seats(count)
    member = session(crowd.fill(count))
    staff = session(crowd.admin())
    counted = counting.queries(member_session=member, admin_session=staff)
    return {"waitlist": staff, "key": member, "landing": "", "queries": counted}


def years(days: int) -> dict[str, Any]:
    """A member who has used something on each of the last `days` days; her session."""
    member = crowd.fill(100)
    usage_rows.used_for(member, days)
    mine = session(member)
    return {"session": mine, "queries": usage_rows.queries(mine)}


def passes(count: int) -> dict[str, Any]:
    return usage_rows.passes(count)


def forget() -> None:
    """The people of the bench leave as members do, so that their keys go at the gateway too."""
    for user in User.objects.filter(email__endswith=f"@{DOMAIN}", is_staff=False):
        membership.leave(user=user)
    User.objects.filter(email__endswith=f"@{DOMAIN}").delete()
    Server.objects.filter(name="bench").delete()


VERBS = {verb.__name__: verb for verb in (admin, applicants, seats, fill, years, passes, forget)}
