"""Rounds seen through pages."""

import re
from html import unescape

import pytest
from django.http import HttpResponse
from django.test import Client

from members.models import User
from tests.pages.markup import words
from tests.people import signed_in


@pytest.fixture
def ana(voters: list[User]) -> Client:
    return signed_in(voters[0])


@pytest.fixture
def bea(voters: list[User]) -> Client:
    return signed_in(voters[1])


@pytest.fixture
def alma(admin: User) -> Client:
    return signed_in(admin)


@pytest.fixture
def bruno(other_admin: User) -> Client:
    return signed_in(other_admin)


def text(page: HttpResponse) -> str:
    """What a person reads, in one line."""
    body = page.content.decode()
    found = re.search("<main.*</main>", body, re.DOTALL)
    return " ".join(unescape(words(found[0] if found else body)).split())
