"""A5: an address belongs to whoever proves it, and so does the password of its account."""

import re
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.socialaccount.models import SocialAccount
from django.test import Client
from django.utils import timezone

from members import mails, outbox
from members.models import Mail, User
from tests.fakes.smtp import SmtpServer
from tests.members.test_accounts import NEW, told
from tests.people import PASSWORD, applicant, person, signed_in
from tests.waiting import at_once

pytestmark = pytest.mark.django_db
VICTIM = "nora@example.org"
CHOSEN = "chosen on the telephone 7"
LINK = re.compile(r"http://127\.0\.0\.1:8000(/accounts/confirm-email/\S+)")


def browser() -> Client:
    return Client(headers={"accept-language": "en"})


def sign_up(client: Client, password: str, email: str = VICTIM) -> None:
    answer = client.post("/accounts/signup/", {"email": email, "password1": password})
    assert (answer.status_code, answer["Location"]) == (302, "/accounts/confirm-email/")


def links(mailbox: SmtpServer) -> list[str]:
    """Of the mails that went out, oldest first."""
    outbox.send_due()
    texts = [mail.get_body(("plain",)).get_content() for mail in mailbox.mails]
    return [found[1] for text in texts if (found := LINK.search(text))]


def lets_in(password: str, email: str = VICTIM) -> bool:
    client = browser()
    client.post("/accounts/login/", {"login": email, "password": password})
    return client.get("/account/").status_code == 200


def text(client: Client, path: str) -> str:
    return client.get(path).content.decode()


def choose(client: Client, path: str, password: str = CHOSEN) -> None:
    answer = client.post(path, {"password1": password, "password2": password})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.get("/account/").status_code == 200


@pytest.mark.parametrize("minutes", [0, 4])
def test_attacker_first_then_the_owner_signs_up(mailbox: SmtpServer, minutes: int) -> None:
    attacker, owner = browser(), browser()
    sign_up(attacker, PASSWORD)
    first = links(mailbox)[0]
    Mail.objects.update(created_at=timezone.now() - timedelta(minutes=minutes))
    sign_up(owner, NEW)
    _first, second = links(mailbox)
    assert "does not work any more" in text(owner, first)
    assert owner.post(second).status_code == 302
    assert owner.get("/account/").status_code == 200  # straight on, as in the browser she used
    assert attacker.get("/account/").status_code == 302
    assert (lets_in(PASSWORD), lets_in(NEW)) == (False, True)


def test_owner_first_then_the_attacker_signs_up(mailbox: SmtpServer) -> None:
    owner, attacker = browser(), browser()
    sign_up(owner, NEW)
    sign_up(attacker, PASSWORD)
    (only,) = links(mailbox)  # hers had not gone out yet, and does not any more
    page = text(owner, only)
    assert "Confirm and set my password" in page
    assert owner.post(only).status_code == 200  # the button alone hands nothing over
    assert not EmailAddress.objects.get().verified
    choose(owner, only)
    assert attacker.get("/account/").status_code == 302
    assert (lets_in(PASSWORD), lets_in(NEW), lets_in(CHOSEN)) == (False, False, True)


def test_a_link_that_was_sent_dies_with_its_sign_up(mailbox: SmtpServer) -> None:
    owner = browser()
    sign_up(owner, NEW)
    hers = links(mailbox)[0]
    sign_up(browser(), PASSWORD)
    for page in (owner.get(hers), owner.post(hers)):
        assert "does not work any more" in page.content.decode()
    assert not EmailAddress.objects.get().verified


def test_confirming_elsewhere_leaves_nothing_of_the_squatter(mailbox: SmtpServer) -> None:
    sign_up(browser(), PASSWORD)
    squatter = User.objects.get()
    TOTP.activate(squatter, generate_totp_secret())
    SocialAccount.objects.create(user=squatter, provider="github", uid="666")
    session = signed_in(squatter)
    assert session.get("/account/").status_code == 200
    choose(browser(), links(mailbox)[0])
    assert Authenticator.objects.count() == SocialAccount.objects.count() == 0
    assert session.get("/account/").status_code == 302
    assert (lets_in(PASSWORD), lets_in(CHOSEN)) == (False, True)


def test_a_weak_password_is_refused_and_confirms_nothing(mailbox: SmtpServer) -> None:
    sign_up(browser(), PASSWORD)
    path, owner = links(mailbox)[0], browser()
    assert owner.post(path, {"password1": "short", "password2": "short"}).status_code == 200
    assert not EmailAddress.objects.get().verified
    assert User.objects.get().check_password(PASSWORD)


def test_a_scanner_changes_nothing_whichever_page_it_gets(mailbox: SmtpServer) -> None:
    sign_up(browser(), PASSWORD)
    path = links(mailbox)[0]
    for _ in range(2):
        assert browser().head(path).status_code == 200
        assert browser().get(path).status_code == 200
    assert User.objects.get().check_password(PASSWORD)
    choose(browser(), path)


def test_signing_in_before_confirming_makes_it_her_browser(mailbox: SmtpServer) -> None:
    sign_up(browser(), PASSWORD)
    other = browser()
    other.post("/accounts/login/", {"login": VICTIM, "password": PASSWORD})
    assert "Confirm my address" in text(other, links(mailbox)[-1])
    assert other.post(links(mailbox)[-1]).status_code == 302
    assert lets_in(PASSWORD)


def test_when_no_more_mails_may_go_the_last_link_lives_on(mailbox: SmtpServer) -> None:
    limit = mails.CONFIRM_LIMIT[0]
    for turn in range(limit + 3):
        sign_up(browser(), f"{PASSWORD} {turn}")
        outbox.send_due()
    assert len(links(mailbox)) == limit
    choose(browser(), links(mailbox)[-1])
    assert User.objects.count() == 1


def test_an_account_that_never_got_its_mail_is_written_to(mailbox: SmtpServer) -> None:
    """Approved before she confirmed: her account does not give way, its link goes out again."""
    applicant("Nora", confirmed=False)
    sign_up(browser(), NEW)
    choose(browser(), links(mailbox)[0])


def test_a_reset_before_confirming_leaves_no_other_way_in(mailbox: SmtpServer) -> None:
    sign_up(browser(), PASSWORD)
    squatter = User.objects.get()
    SocialAccount.objects.create(user=squatter, provider="github", uid="666")
    owner = browser()
    owner.post("/accounts/password/reset/", {"email": VICTIM})
    outbox.send_due()
    body = mailbox.mails[-1].get_body(("plain",)).get_content()
    key = re.search(r"http://127\.0\.0\.1:8000(/accounts/password/reset/key/\S+)", body)[1]
    form = owner.get(key)["Location"]
    owner.post(form, {"password1": CHOSEN, "password2": CHOSEN})
    assert SocialAccount.objects.count() == 0
    assert User.objects.get().check_password(CHOSEN)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", range(3))
def test_two_sign_ups_at_once_make_one_account_and_a_link_for_it(
    turn: int, mailbox: SmtpServer
) -> None:
    at_once([lambda: sign_up(browser(), NEW), lambda: sign_up(browser(), PASSWORD)])
    assert User.objects.count() == 1
    choose(browser(), links(mailbox)[-1])


def test_a6_repeated_sign_ups_look_as_the_first() -> None:
    answers = [
        told(Client(), "/accounts/signup/", {"email": email, "password1": NEW})
        for email in [VICTIM] * 7 + ["nadia@example.org"]
    ]
    assert answers == answers[:1] * 8


# -- Changing the address of an account -------------------------------------------------------
def wants(user: User, email: str = VICTIM) -> Client:
    client = signed_in(user)
    client.post("/accounts/login/", {"login": user.email, "password": PASSWORD})
    EmailAddress.objects.create(user=user, email=email)
    mails.confirm(EmailAddress.objects.get(user=user, email=email))
    return client


def test_a_change_says_whose_it_is_and_needs_that_account(mailbox: SmtpServer) -> None:
    attacker = person("Mallory")
    session = wants(attacker)
    path = links(mailbox)[0]
    mail = mailbox.mails[-1]
    assert mail["To"] == VICTIM
    assert "m…@example.org" in mail.get_body(("plain",)).get_content()
    for client in (browser(), signed_in(person("Otto"))):
        before = client.get("/account/").status_code
        for page in (client.get(path), client.post(path)):
            assert "m…@example.org" in page.content.decode()
        assert client.get("/account/").status_code == before
    attacker.refresh_from_db()
    assert attacker.email == "mallory@example.org"
    assert session.post(path).status_code == 302  # the account's owner can
    attacker.refresh_from_db()
    assert attacker.email == VICTIM


def test_a_wanted_address_does_not_stand_in_the_way_of_its_owner(mailbox: SmtpServer) -> None:
    attacker = person("Mallory")
    session = wants(attacker)
    claim = links(mailbox)[0]
    owner = browser()
    sign_up(owner, NEW)
    assert owner.post(links(mailbox)[1]).status_code == 302
    assert lets_in(NEW)
    assert "does not work any more" in text(session, claim)
    assert set(User.objects.values_list("email", flat=True)) == {VICTIM, "mallory@example.org"}
    assert EmailAddress.objects.filter(user=attacker).count() == 1
