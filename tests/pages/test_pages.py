"""Every page: one h1, a title, the right language, labels, nothing that the CSP would refuse."""

import json
from pathlib import Path

import pytest
from allauth.account.models import EmailAddress, EmailConfirmationHMAC
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.test import Client

from members.models import User
from tests.pages.markup import faults, read
from tests.people import PASSWORD, signed_in

pytestmark = pytest.mark.django_db
LANGUAGES = ["es", "en"]
# What Chromium's virtual authenticator answered when it was added to an account.
SECURITY_KEY = Path(__file__).parent / "security_key.json"

CSP = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self' https://github.com",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}

SIGNED_OUT = [
    "/",
    "/privacy/",
    "/status/",
    "/accounts/login/",
    "/accounts/signup/",
    "/accounts/password/reset/",
    "/accounts/password/reset/done/",
    "/accounts/password/reset/key/1-bad/",
    "/accounts/password/reset/key/done/",
    "/accounts/confirm-email/",
    "/accounts/confirm-email/nonsense/",
    "/accounts/inactive/",
    "/accounts/3rdparty/login/cancelled/",
    "/accounts/3rdparty/login/error/",
    "/dev/mail/",
]

ACCOUNT = [
    "/privacy/",
    "/accounts/email/",
    "/accounts/password/change/",
    "/accounts/2fa/",
    "/accounts/2fa/totp/activate/",
    "/accounts/2fa/webauthn/",
    "/accounts/2fa/webauthn/add/",
    "/accounts/sessions/",
    "/accounts/logout/",
    "/accounts/reauthenticate/",
    "/accounts/3rdparty/",
]

SECOND_FACTOR = [
    "/accounts/2fa/",
    "/accounts/2fa/totp/deactivate/",
    "/accounts/2fa/recovery-codes/",
    "/accounts/2fa/recovery-codes/generate/",
    "/accounts/2fa/webauthn/",
    "/accounts/2fa/webauthn/keys/{key}/edit/",
    "/accounts/2fa/webauthn/keys/{key}/remove/",
    "/accounts/2fa/reauthenticate/",
    "/accounts/2fa/webauthn/reauthenticate/",
]


def policy(header: str) -> dict[str, str]:
    return dict(part.strip().split(" ", 1) for part in header.split(";"))


@pytest.fixture
def ana(db: None) -> Client:
    """Signed in with her password a moment ago, so that nothing asks her for it again."""
    user = User.objects.create_user("ana@example.org", PASSWORD)
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    client = Client()
    client.post("/accounts/login/", {"login": user.email, "password": PASSWORD})
    return client


@pytest.fixture
def beatriz(ana: Client) -> tuple[Client, int]:
    """Ana's account with an authenticator app, recovery codes and a security key."""
    user = User.objects.get(email="ana@example.org")
    TOTP.activate(user, generate_totp_secret())
    RecoveryCodes.activate(user)
    key = Authenticator.objects.create(
        user=user, type=Authenticator.Type.WEBAUTHN, data=json.loads(SECURITY_KEY.read_text())
    )
    ana.post("/accounts/reauthenticate/", {"password": PASSWORD})
    return ana, key.pk


def test_each_page_of_the_account_is_marked_in_the_header(ana: Client) -> None:
    for path, current in (("/account/", "page"), ("/accounts/email/", "true")):
        html = ana.get(path).content.decode()
        assert f'<a href="/account/" aria-current="{current}"' in html


def test_new_recovery_codes_are_the_second_choice(beatriz: tuple[Client, int]) -> None:
    page = beatriz[0].get("/accounts/2fa/recovery-codes/", headers={"accept-language": "en"})
    html = page.content.decode()
    assert '<a href="/accounts/2fa/recovery-codes/download/" class="button"' in html
    assert '<a href="/accounts/2fa/recovery-codes/generate/" class="button quiet"' in html
    assert "New codes end the old ones" in html


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("path", SIGNED_OUT)
def test_signed_out(client: Client, path: str, language: str) -> None:
    response = client.get(path, headers={"accept-language": language})
    assert response.status_code in {200, 401}
    assert faults(response, language=language) == []
    assert policy(response["Content-Security-Policy"]) == CSP
    assert read(response).skip_target == "#main"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("path", ACCOUNT)
def test_account(ana: Client, path: str, language: str) -> None:
    response = ana.get(path, headers={"accept-language": language}, follow=True)
    assert response.status_code == 200
    assert faults(response, language=language) == []
    assert policy(response["Content-Security-Policy"]) == CSP


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("path", SECOND_FACTOR)
def test_second_factor(beatriz: tuple[Client, int], path: str, language: str) -> None:
    client, key = beatriz
    response = client.get(path.format(key=key), headers={"accept-language": language})
    assert response.status_code == 200
    assert faults(response, language=language) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_second_factor_at_sign_in(beatriz: tuple[Client, int], language: str) -> None:
    client = Client(headers={"accept-language": language})
    credentials = {"login": "ana@example.org", "password": PASSWORD}
    response = client.post("/accounts/login/", credentials, follow=True)
    assert response.request["PATH_INFO"] == "/accounts/2fa/authenticate/"
    assert faults(response, language=language) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_confirming_an_address(outsider: User, language: str) -> None:
    address = EmailAddress.objects.create(user=outsider, email="new@example.org")
    key = EmailConfirmationHMAC.create(address).key
    response = Client().get(
        f"/accounts/confirm-email/{key}/", headers={"accept-language": language}
    )
    assert (response.status_code, faults(response, language=language)) == (200, [])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/accounts/signup/", {"email": "nonsense", "password1": "short"}),
        ("/accounts/login/", {"login": "a@example.org", "password": "wrong"}),
        ("/accounts/password/reset/", {"email": ""}),
    ],
)
def test_refused_forms(client: Client, path: str, data: dict[str, str], language: str) -> None:
    response = client.post(path, data, headers={"accept-language": language})
    assert (response.status_code, faults(response, language=language)) == (200, [])
    for field in read(response).inputs:
        if field.get("aria-invalid"):
            described = str(field["aria-describedby"]).split()
            assert f"{field['id']}_error" in described
            assert set(described) <= set(read(response).ids)


def test_menus_follow_the_reader(outsider: User, admin: User) -> None:
    def links(client: Client) -> set[str]:
        html = client.get("/privacy/").content.decode().split("<main")[0]
        return {name for name in ("login", "signup", "/account/", "/staff/") if name in html}

    assert links(Client()) == {"login", "signup"}
    assert links(signed_in(outsider)) == {"/account/"}
    assert links(signed_in(admin)) == {"/account/", "/staff/"}


def test_second_factor_is_reachable_from_the_account_menu(outsider: User) -> None:
    html = signed_in(outsider).get("/accounts/email/").content.decode()
    assert 'href="/accounts/2fa/"' in html.split('class="account-nav"')[1].split("</nav>")[0]


def test_language_switch_is_remembered_and_returns_to_the_page(client: Client) -> None:
    html = client.get("/privacy/", headers={"accept-language": "es"}).content.decode()
    assert 'name="language" value="en" lang="en">English</button>' in " ".join(html.split())
    response = client.post("/i18n/setlang/", {"language": "en", "next": "/privacy/"})
    assert response["Location"] == "/privacy/"
    assert read(client.get("/privacy/", headers={"accept-language": "es"})).lang == "en"
