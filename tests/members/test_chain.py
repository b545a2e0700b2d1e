"""From sign-up to membership, through the pages."""

import re

import pytest
from django.test import Client

from inference.models import Server
from members import outbox
from members.models import Application, Membership, User
from tests.fakes.smtp import SmtpServer
from tests.people import ANSWERS, PASSWORD, signed_in


def link(mail) -> str:
    return re.search(r"http://127\.0\.0\.1:8000(/\S+)", mail.get_body(("plain",)).get_content())[1]


@pytest.mark.django_db
def test_sign_up_confirm_apply_approve_welcome(
    mailbox: SmtpServer, no_wait: None, admin: User, seats: Server
) -> None:
    client = Client(headers={"accept-language": "en"})
    answer = client.post("/accounts/signup/", {"email": "Nora@Example.org", "password1": PASSWORD})
    assert (answer.status_code, answer["Location"]) == (302, "/accounts/confirm-email/")
    assert client.get("/waitlist/").status_code == 302  # not signed in before the confirmation

    outbox.send_due()
    confirm = mailbox.mails.pop()
    assert confirm["To"] == "nora@example.org"
    assert client.post(link(confirm)).status_code == 302

    page = client.post("/waitlist/", ANSWERS, follow=True)
    assert "among the next 20" in page.content.decode()
    application = Application.objects.get()
    assert application.state == "pending"
    assert not application.user.is_member

    staff = signed_in(admin)
    assert "nora@example.org" in staff.get("/staff/waitlist/").content.decode()
    staff.post("/staff/waitlist/decide/", {"application": application.pk, "action": "approve"})

    assert Membership.objects.get().user == application.user
    assert User.objects.get(email="nora@example.org").is_member
    outbox.send_due()
    outbox.send_due()
    assert [mail["Subject"] for mail in mailbox.mails] == ["Welcome: you are in"]
    assert client.get("/")["Location"] == "/key/"
