"""Error pages speak to people, keep the rules of every page, and need as little as possible."""

import pytest
from django.template.loader import render_to_string
from django.test import Client, RequestFactory
from django.utils import translation
from django.views import defaults

from tests.pages.markup import Page, faults

BARE = ["400", "500", "503"]


@pytest.mark.parametrize("language", ["es", "en"])
@pytest.mark.parametrize("name", BARE)
def test_needs_no_database_and_no_context(name: str, language: str) -> None:
    """No database fixture: a query would fail the test."""
    with translation.override(language):
        page = Page(render_to_string(f"{name}.html"))
    assert (len(page.h1), page.lang, page.inline) == (1, language, [])


@pytest.mark.django_db
@pytest.mark.parametrize("language", ["es", "en"])
@pytest.mark.parametrize(
    ("view", "status"),
    [
        (defaults.page_not_found, 404),
        (defaults.permission_denied, 403),
        (defaults.bad_request, 400),
    ],
)
def test_default_views_use_our_pages(view: object, status: int, language: str) -> None:
    request = RequestFactory().get("/nowhere/")
    with translation.override(language):
        response = view(request, Exception("secret detail"))
    assert (response.status_code, faults(response, language=language)) == (status, [])
    assert b"secret detail" not in response.content


@pytest.mark.django_db
def test_missing_page() -> None:
    response = Client().get("/nowhere/", headers={"accept-language": "en"})
    assert (response.status_code, faults(response, language="en")) == (404, [])


@pytest.mark.django_db
def test_form_without_its_token() -> None:
    client = Client(enforce_csrf_checks=True, headers={"accept-language": "en"})
    response = client.post("/accounts/login/", {"login": "a@example.org", "password": "x"})
    assert (response.status_code, faults(response, language="en")) == (403, [])
    assert b"This form was too old" in response.content


@pytest.mark.django_db
def test_too_many_attempts() -> None:
    client = Client(headers={"accept-language": "en"})
    for number in range(40):
        response = client.post("/accounts/password/reset/", {"email": f"p{number}@example.org"})
        if response.status_code == 429:
            break
    assert (response.status_code, faults(response, language="en")) == (429, [])
    assert b"Too many attempts" in response.content
