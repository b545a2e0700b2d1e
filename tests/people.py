"""The people of the tests: a member, a waiting person, an outsider, an admin."""

from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.core.cache import cache
from django.test import Client

from inference.models import Server
from inference.status.shelf import shelf
from members import waitlist
from members.models import Application, User

PASSWORD = "correct horse battery staple"

ANSWERS: dict[str, Any] = {
    "builds": "A compiler for knitting patterns, written with an agent.",
    "clients": ["opencode", "claude-code"],
    "tokens_per_day": "to-10m",
    "referred_by": "Ada",
}


def person(name: str, *, confirmed: bool = True, **fields: Any) -> User:
    email = fields.pop("email", f"{name.lower()}@example.org")
    user = User.objects.create_user(email, PASSWORD, name=name, language="en", **fields)
    EmailAddress.objects.create(user=user, email=user.email, verified=confirmed, primary=True)
    return user


def applicant(name: str, *, confirmed: bool = True, **fields: Any) -> Application:
    return waitlist.apply(user=person(name, confirmed=confirmed), **{**ANSWERS, **fields})


def staff(name: str) -> User:
    """An admin with a second factor, as the staff pages ask for."""
    user = person(name, is_staff=True, is_superuser=True)
    TOTP.activate(user, generate_totp_secret())
    return user


def let_in(application: Application, *, by: User) -> User:
    waitlist.approve(applications=[application.pk], actor=by, beyond_capacity=True)
    return User.objects.get(pk=application.user_id)


def signed_in(user: User) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(user, "allauth.account.auth_backends.AuthenticationBackend")
    return client


@pytest.fixture(autouse=True)
def _empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known is asked for in the test's own thread, which alone sees the test's rows."""
    cache.clear()
    shelf.forget()
    monkeypatch.setattr(shelf, "_aside", lambda run, seconds: run())


@pytest.fixture
def seats(db: None) -> Server:
    return Server.objects.create(name="gpu-1", seats=1000)


@pytest.fixture
def admin(db: None) -> User:
    return staff("Alma")


@pytest.fixture
def other_admin(db: None) -> User:
    return staff("Bruno")


@pytest.fixture
def waiting(db: None) -> Application:
    return applicant("Wanda")


@pytest.fixture
def outsider(db: None) -> User:
    """Signed up and confirmed, never applied."""
    return person("Otto")


@pytest.fixture
def member(admin: User, seats: Server) -> User:
    return let_in(applicant("Mara"), by=admin)


@pytest.fixture
def other_member(admin: User, seats: Server) -> User:
    return let_in(applicant("Nora"), by=admin)
