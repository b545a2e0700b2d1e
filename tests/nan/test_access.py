"""Where sign-in leads to for somebody whose session was over when she pressed a button."""

import pytest
from django.test import Client
from django.urls import reverse

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("referer", "leads_to"),
    [
        ("http://testserver/key/?new=1", "/key/%3Fnew%3D1"),
        ("http://testserver//elsewhere.example/key/", "/elsewhere.example/key/"),
        ("http://elsewhere.example/key/", None),
        ("javascript:alert(1)", None),
        ("", None),
    ],
)
def test_a_button_after_the_session_leads_back_to_its_page(
    referer: str, leads_to: str | None
) -> None:
    headers = {"Referer": referer} if referer else {}
    answer = Client().post(reverse("key_rotate"), headers=headers)
    login = reverse("account_login")
    assert answer["Location"] == f"{login}?next={leads_to or reverse('home')}"


def test_a_page_leads_back_to_itself() -> None:
    answer = Client().get(reverse("key"), headers={"Referer": "http://testserver/docs/"})
    assert answer["Location"] == f"{reverse('account_login')}?next={reverse('key')}"
