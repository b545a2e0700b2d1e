"""A person in front of the site, without a browser: cookies, forms, links in mails."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from html import unescape
from itertools import count
from urllib.parse import urlsplit

import httpx

from tests.stack import Stack
from tests.waiting import at_once, wait_until

PASSWORD = "correct horse battery staple"
ANSWERS: dict[str, object] = {
    "builds": "A compiler for knitting patterns, written with an agent.",
    "clients": ["opencode", "claude-code"],
    "tokens_per_day": "to-10m",
    "referred_by": "Ada",
}
NUMBERS = count(1)


@dataclass
class Visitor:
    stack: Stack
    email: str = ""
    language: str = "en"
    public_id: str = ""  # known of those made by `members`
    http: httpx.Client = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.email = self.email or f"person{next(NUMBERS)}@example.org"
        self.http = httpx.Client(
            base_url=self.stack.site,
            headers={"Accept-Language": self.language},
            timeout=30,
            follow_redirects=True,
        )

    # -- Pages -----------------------------------------------------------------------------------

    def get(self, path: str) -> str:
        answer = self.http.get(path)
        assert answer.status_code == 200, f"{path}: {answer.status_code}"
        return answer.text

    def post(self, path: str, data: dict[str, object] | None = None) -> httpx.Response:
        """As a form on the site would; `path` may lead to a page that has none itself."""
        token = self.http.cookies.get("csrf") or self._fetch_token()
        return self.http.post(
            path,
            data={**(data or {}), "csrfmiddlewaretoken": token},
            headers={"Referer": f"{self.stack.site}/"},
        )

    def _fetch_token(self) -> str:
        self.http.get("/accounts/login/")
        return self.http.cookies["csrf"]

    def open_link(self, text: str) -> str:
        """The path of the first link to the site in a mail's text."""
        found = re.search(rf"{re.escape(self.stack.site)}(/\S+)", text)
        assert found, f"no link to the site in: {text}"
        return urlsplit(found[1]).path

    # -- The way in ------------------------------------------------------------------------------

    def sign_up(self) -> "Visitor":
        answer = self.post("/accounts/signup/", {"email": self.email, "password1": PASSWORD})
        assert answer.status_code == 200, answer.text
        mail = self.stack.mail(self.email, about="confirm")
        answer = self.post(self.open_link(mail))
        assert answer.status_code == 200, answer.text
        return self

    def sign_in(self) -> httpx.Response:
        return self.post("/accounts/login/", {"login": self.email, "password": PASSWORD})

    def apply(self) -> "Visitor":
        answer = self.post("/waitlist/", dict(ANSWERS))
        assert answer.status_code == 200, answer.text
        return self

    def be_let_in(self) -> "Visitor":
        self.stack.manage("waitlist", "approve", self.email, "--beyond-capacity", "--json")
        return self

    def become_member(self) -> "Visitor":
        return self.sign_up().apply().be_let_in()

    # -- Her key ---------------------------------------------------------------------------------

    def create_key(self, *, seconds: float = 30) -> str:
        self.post("/key/create")
        return self.reveal(seconds=seconds)

    def reveal(self, *, seconds: float = 30) -> str:
        self.until("Show my key", seconds=seconds)
        page = self.post("/key/reveal").text
        found = re.search(r"sk-[A-Za-z0-9_-]{20,}", unescape(page))
        assert found, page
        return found[0]

    def until(self, words: str, *, seconds: float = 60, path: str = "/key/") -> str:
        """Reloads a page until it says `words`."""
        return str(
            wait_until(
                lambda: (page := unescape(self.get(path))) and words in page and page,
                seconds=seconds,
                what=f"{path} to say {words!r}",
            )
        )


# -- Many at once ----------------------------------------------------------------------------------

MAKE_MEMBERS = """
import json, sys
from allauth.account.models import EmailAddress
from django.contrib.auth.hashers import make_password
from django.test import Client
from members import waitlist
from members.models import User

emails, password, answers = json.loads(sys.argv[1])
stored, made = make_password(password), []
for email in emails:
    user = User.objects.create(email=email, password=stored, language="en")
    EmailAddress.objects.create(user=user, email=email, verified=True, primary=True)
    if answers:
        application = waitlist.apply(user=user, **answers)
        waitlist.approve(applications=[application.pk], actor=None, beyond_capacity=True)
    client = Client()
    client.force_login(user, "allauth.account.auth_backends.AuthenticationBackend")
    made.append([str(user.public_id), client.cookies["session"].value])
print(json.dumps(made))
"""


def members(stack: Stack, count: int) -> list[Visitor]:
    """People who are in and signed in, made by the use cases instead of through the pages: those
    let one address through so often a minute only."""
    return _made(stack, count, answers=ANSWERS)


def confirmed(stack: Stack, count: int) -> list[Visitor]:
    """People who have signed up, confirmed and signed in, and not applied."""
    return _made(stack, count, answers={})


def ask_for_keys(people: Sequence[Visitor]) -> None:
    """All at the same moment."""
    at_once([partial(person.post, "/key/create") for person in people])


def _made(stack: Stack, count: int, *, answers: dict[str, object]) -> list[Visitor]:
    people = [Visitor(stack) for _ in range(count)]
    arguments = json.dumps([[person.email for person in people], PASSWORD, answers])
    made = json.loads(stack.python(MAKE_MEMBERS, arguments).splitlines()[-1])
    for person, (public_id, session) in zip(people, made, strict=True):
        person.public_id = public_id
        person.http.cookies.set("session", session, domain="localhost.local")
    return people


MAKE_ADMIN = """
import json, sys
from allauth.account.models import EmailAddress
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.test import Client
from members.models import User

user = User.objects.create(
    email=sys.argv[1], language=sys.argv[2], is_staff=True, is_superuser=True
)
EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
TOTP.activate(user, generate_totp_secret())
client = Client()
client.force_login(user, "allauth.account.auth_backends.AuthenticationBackend")
print(client.cookies["session"].value)
"""


def admin(stack: Stack, *, language: str = "en") -> Visitor:
    """An admin who has signed in, with a second factor."""
    person = Visitor(stack, f"admin{next(NUMBERS)}@example.org", language)
    session = stack.python(MAKE_ADMIN, person.email, language).split()[-1]
    person.http.cookies.set("session", session, domain="localhost.local")
    return person
