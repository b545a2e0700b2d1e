"""Language: the cookie decides, then the profile, then the browser; the button sets both."""

import pytest
from django.test import Client

from members.models import User
from tests.people import PASSWORD, person, signed_in

pytestmark = pytest.mark.django_db


def language_of(client: Client) -> str:
    page = client.get("/privacy/").content.decode()
    return page[page.index("<html lang=") :][12:14]


def test_browser_then_profile_then_cookie() -> None:
    user = person("Nora")
    User.objects.filter(pk=user.pk).update(language="es")
    client = Client(headers={"accept-language": "en"})
    assert language_of(client) == "en"
    client.force_login(user, "allauth.account.auth_backends.AuthenticationBackend")
    assert language_of(client) == "es"
    client.cookies["django_language"] = "en"
    assert language_of(client) == "en"


def test_the_button_sets_cookie_and_profile() -> None:
    user = person("Nora")
    client = signed_in(user)
    client.post("/i18n/setlang/", {"language": "es", "next": "/privacy/"})
    assert language_of(client) == "es"
    assert User.objects.get(pk=user.pk).language == "es"


def test_a_language_that_we_do_not_have_changes_nothing() -> None:
    user = person("Nora")
    client = signed_in(user)
    client.post("/i18n/setlang/", {"language": "xx", "next": "/privacy/"})
    assert (language_of(client), User.objects.get(pk=user.pk).language) == ("en", "en")


def test_the_greeting_is_in_her_language() -> None:
    user = person("Nora")
    User.objects.filter(pk=user.pk).update(language="es")
    client = Client(headers={"accept-language": "en"})
    answer = client.post(
        "/accounts/login/", {"login": user.email, "password": PASSWORD}, follow=True
    )
    page = answer.content.decode()
    assert 'lang="es"' in page
    assert "Successfully signed in" not in page
