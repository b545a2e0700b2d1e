"""Signing up, in and back in: no hints, no take-over, no lock-out."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers.github.views import GitHubOAuth2Adapter
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from members import mails, outbox
from members.models import Mail, User
from tests.fakes.github import GitHub, github_server
from tests.fakes.smtp import SmtpServer
from tests.members.test_outbox import queued
from tests.people import PASSWORD, person, signed_in

pytestmark = pytest.mark.django_db
NEW = "another horse battery staple"


def plain_mail(mailbox: SmtpServer) -> str:
    return mailbox.mails[-1].get_body(("plain",)).get_content()


def path_in(text: str) -> str:
    return re.search(r"http://127\.0\.0\.1:8000(/accounts/(?:confirm|password)\S+)", text)[1]


def sent_to(mailbox: SmtpServer) -> str:
    outbox.send_due()
    return path_in(plain_mail(mailbox))


# -- A6: known and unknown addresses get the same answer --------------------------------------
def told(client: Client, path: str, data: dict[str, str]) -> tuple[Any, ...]:
    """Everything a stranger can see of an answer, with what she typed blanked."""
    response = client.post(path, data)
    page = client.get(response["Location"]) if response.status_code == 302 else response
    return (
        response.status_code,
        response.get("Location"),
        sorted(response.cookies),
        blank(page, data),
    )


def blank(page: HttpResponse, data: dict[str, str]) -> str:
    text = page.content.decode()
    for value in data.values():
        text = text.replace(value, "TYPED")
    return re.sub(r'(csrfmiddlewaretoken" value=|X-CSRFToken": )"[^"]+"', "", text)


@pytest.mark.parametrize(
    ("path", "field", "password"),
    [
        ("/accounts/signup/", "email", "password1"),
        ("/accounts/password/reset/", "email", None),
        ("/accounts/login/", "login", "password"),
    ],
)
@pytest.mark.parametrize("known", ["confirmed", "unconfirmed", "suspended"])
def test_a6_known_and_unknown_look_the_same(
    path: str, field: str, password: str | None, known: str
) -> None:
    user = person("Nora", confirmed=known != "unconfirmed", is_active=known != "suspended")
    typed = {password: NEW} if password else {}
    first = told(Client(), path, {field: user.email, **typed})
    second = told(Client(), path, {field: "nadia@example.org", **typed})
    assert first == second


def test_a6_mail_to_one_address_is_limited(outsider: User) -> None:
    for _ in range(20):
        Client().post("/accounts/password/reset/", {"email": outsider.email})
        Client().post("/accounts/signup/", {"email": outsider.email, "password1": NEW})
        Client().post("/accounts/signup/", {"email": "new@example.org", "password1": NEW})
    assert Mail.objects.filter(to=outsider.email, kind="reset").count() <= 2
    assert Mail.objects.filter(to=outsider.email, kind="account_exists").count() <= 2
    assert Mail.objects.filter(to="new@example.org").count() == mails.CONFIRM_LIMIT[0]


def test_a6_at_most_ten_of_a_kind_a_day(outsider: User) -> None:
    for window in range(mails.MAILS_PER_DAY):
        Mail.objects.create(user=outsider, to=outsider.email, kind="reset", dedupe=f"{window}")
    mails.reset_password(outsider)
    assert Mail.objects.count() == mails.MAILS_PER_DAY


@pytest.mark.django_db(transaction=True)
def test_a6_nobody_is_mailed_who_has_no_account_but_the_work_is_the_same() -> None:
    person("Nora")
    known, published = cost_of_reset("nora@example.org")
    assert published == 1
    Mail.objects.all().delete()
    unknown, published = cost_of_reset("nobody@example.org")
    assert published == 1
    assert Mail.objects.count() == 0
    assert abs(known - unknown) <= 3  # queries, with those that open and end transactions


def cost_of_reset(email: str) -> tuple[int, int]:
    before = queued()
    with CaptureQueriesContext(connection) as captured:
        Client().post("/accounts/password/reset/", {"email": email})
    return len(captured), queued() - before


# -- A2: limits by the real client ------------------------------------------------------------
def fail(ip: str, *, forged: str = "", email: str = "otto@example.org") -> int:
    seen = f"{forged}, {ip}" if forged else ip  # the edge appends what it sees
    client = Client(headers={"x-forwarded-for": seen})
    data = {"login": email, "password": "wrong wrong wrong"}
    return client.post("/accounts/login/", data).status_code


def test_a2_forged_addresses_change_nothing(outsider: User) -> None:
    codes = [fail("198.51.100.7", forged=f"10.0.0.{n}") for n in range(40)]
    assert codes[:5] == [200] * 5
    assert set(codes[5:]) == {429}


def test_a2_nobody_is_locked_out_from_elsewhere(outsider: User) -> None:
    owner = "203.0.113.9"
    for n in range(40):
        fail("198.51.100.7", forged=owner)
        fail(f"198.51.100.{n}", forged=owner)
    client = Client(headers={"x-forwarded-for": owner})
    answer = client.post("/accounts/login/", {"login": outsider.email, "password": PASSWORD})
    assert answer.status_code == 302
    assert client.get("/account/").status_code == 200


# -- A7: opening a link changes nothing -------------------------------------------------------
def test_a7_a_mail_scanner_does_not_use_up_the_link(mailbox: SmtpServer) -> None:
    client = Client(headers={"accept-language": "en"})
    client.post("/accounts/signup/", {"email": "nora@example.org", "password1": PASSWORD})
    path = sent_to(mailbox)
    for _ in range(2):
        assert Client().head(path).status_code == 200
        assert Client().get(path).status_code == 200
    assert not EmailAddress.objects.get().verified
    assert client.post(path).status_code == 302
    assert EmailAddress.objects.get().verified
    for page in (client.get(path), client.post(path), Client().get(path)):
        assert page.status_code == 200
    page = Client(headers={"accept-language": "en"}).get(path)
    assert "<h1>Already confirmed</h1>" in page.content.decode()
    assert Client().get(path[:-3] + "x/").status_code == 200  # says that it is not valid


def test_links_do_not_follow_the_host_header(mailbox: SmtpServer, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    client = Client(headers={"host": "evil.example"})
    client.post("/accounts/signup/", {"email": "nora@example.org", "password1": PASSWORD})
    outbox.send_due()
    assert "evil" not in mailbox.mails[-1].as_string()
    assert "http://127.0.0.1:8000/accounts/confirm-email/" in plain_mail(mailbox)


# -- A5: an address taken before its owner came -----------------------------------------------
@pytest.fixture
def github(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    """allauth reads GitHub's addresses at import, so they are replaced where it keeps them."""
    ours = settings.SOCIALACCOUNT_PROVIDERS["github"]
    apps = [{"client_id": "x", "secret": "y"}]
    settings.SOCIALACCOUNT_PROVIDERS = {"github": {**ours, "APPS": apps}}
    with github_server() as server:
        for name, path in (
            ("access_token_url", "/login/oauth/access_token"),
            ("profile_url", "/api/v3/user"),
            ("emails_url", "/api/v3/user/emails"),
        ):
            monkeypatch.setattr(GitHubOAuth2Adapter, name, server.url + path)
        yield server


def come_from_github(client: Client) -> HttpResponse:
    start = client.post("/accounts/github/login/")
    state = re.search(r"state=([^&]+)", start["Location"])[1]
    return client.get(f"/accounts/github/login/callback/?code=c&state={state}")


def test_a5_the_owner_from_github_gets_an_account_that_is_hers_alone(github: GitHub) -> None:
    attacker = Client()
    attacker.post("/accounts/signup/", {"email": "nora@example.org", "password1": PASSWORD})
    squatter = User.objects.get()
    github.addresses = [{"email": "nora@example.org", "verified": True, "primary": True}]

    owner = Client()
    assert come_from_github(owner).status_code == 302
    assert owner.get("/account/").status_code == 200
    user = User.objects.get()
    assert (user.email, user.name) == ("nora@example.org", "Nora")
    assert user.pk != squatter.pk
    assert not user.has_usable_password()
    assert SocialAccount.objects.get().extra_data == {"login": "nora"}
    assert come_from_github(Client()).status_code == 302  # and again, to the same account
    assert SocialAccount.objects.get().user == user
    attacker.post("/accounts/login/", {"login": "nora@example.org", "password": PASSWORD})
    assert attacker.get("/account/").status_code == 302
    assert not user.is_member


def test_a5_github_is_not_merged_into_an_account_with_that_address(github: GitHub) -> None:
    person("Nora")
    github.addresses = [{"email": "nora@example.org", "verified": True, "primary": True}]
    client = Client()
    assert come_from_github(client)["Location"] == "/accounts/confirm-email/"
    assert client.get("/account/").status_code == 302
    assert SocialAccount.objects.count() == 0


def test_a5_an_address_that_github_has_not_verified_proves_nothing(github: GitHub) -> None:
    person("Nora", confirmed=False)
    github.addresses = [{"email": "nora@example.org", "verified": False, "primary": True}]
    client = Client()
    assert come_from_github(client)["Location"] == "/accounts/confirm-email/"
    assert client.get("/account/").status_code == 302
    assert not EmailAddress.objects.filter(verified=True).exists()
    assert User.objects.get().check_password(PASSWORD)


def test_an_unconfirmed_change_of_address_opens_no_door(mailbox: SmtpServer) -> None:
    """She mistypes her new address: whoever owns it must not get into her account."""
    user = person("Nora")
    client = signed_in(user)
    client.post("/accounts/email/", {"email": "stranger@example.org", "action_add": ""})
    Mail.objects.all().delete()
    Client().post("/accounts/password/reset/", {"email": "stranger@example.org"})
    assert Mail.objects.count() == 0


def test_a_change_of_address_wins_over_who_took_it_without_proof(mailbox: SmtpServer) -> None:
    user = person("Nora")
    person("Squatter", email="new@example.org", confirmed=False)
    address = EmailAddress.objects.create(user=user, email="new@example.org")
    mails.confirm(address)
    client = signed_in(user)
    assert client.post(sent_to(mailbox)).status_code == 302
    assert [u.email for u in User.objects.all()] == ["new@example.org"]
    outbox.send_due()
    assert mailbox.mails[-1]["To"] == "nora@example.org"  # the old address is told


def test_signing_in_works_while_the_cache_is_away(outsider: User, settings: Settings) -> None:
    """Limits do not count then; that is chosen over a site on which nobody can sign in."""
    down = {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/1"}
    settings.CACHES = {"default": down}
    client = Client()
    client.post("/accounts/login/", {"login": outsider.email, "password": PASSWORD})
    assert client.get("/account/").status_code == 200


@pytest.mark.django_db
def test_a_second_sign_up_in_a_row_reads_as_the_first(mailbox: SmtpServer) -> None:
    """A sentence that comes only the first time would tell that somebody asked before (A6)."""
    pages = []
    for _ in range(2):
        client = Client(headers={"accept-language": "en"})
        form = {"email": "twice@example.org", "password1": PASSWORD}
        pages.append(client.post("/accounts/signup/", form, follow=True).content.decode())
    assert "twice@example.org" not in pages[0]
    assert [without_token(page) for page in pages[:1]] == [without_token(pages[1])]


def without_token(page: str) -> str:
    return re.sub(r'csrfmiddlewaretoken" value="\w+"|CSRFToken": "\w+"', "", page)
