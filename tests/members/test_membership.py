"""Who is in, from when, until when."""

import json

import pytest
from allauth.account.models import EmailAddress
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client

from inference import keys
from inference.models import Key, KeyHolder, Server
from members import letters, membership, outbox, waitlist
from members.accounts import AccountAdapter
from members.models import Application, Mail, Membership, MembershipEvent, User
from tests.people import PASSWORD, applicant, let_in, person, signed_in, staff
from tests.waiting import at_once

pytestmark = pytest.mark.django_db


def confirm(user: User, rf) -> None:
    """What the button of the confirmation page does."""
    request = signed_request(rf)
    AccountAdapter(request).confirm_email(request, EmailAddress.objects.get(user=user))


def signed_request(rf):
    from django.contrib.auth.models import AnonymousUser
    from django.contrib.messages.storage.cookie import CookieStorage
    from django.contrib.sessions.backends.db import SessionStore

    request = rf.post("/")
    request.session, request.user = SessionStore(), AnonymousUser()
    request._messages = CookieStorage(request)
    return request


def kinds() -> list[str]:
    return list(Mail.objects.filter(state="due").order_by("pk").values_list("kind", flat=True))


# -- W2: active needs both, in either order, once ---------------------------------------------
def test_w2_confirm_then_approve(admin: User, seats: Server) -> None:
    user = let_in(applicant("Nora"), by=admin)
    assert user.is_member
    membership.activate(users=[user.pk])
    assert kinds() == ["welcome"]


def test_w2_approve_then_confirm(admin: User, seats: Server, rf) -> None:
    user = let_in(applicant("Nora", confirmed=False), by=admin)
    assert not user.is_member
    assert kinds() == ["place_ready"]
    confirm(user, rf)
    membership.activate(users=[user.pk])
    assert User.objects.get(pk=user.pk).is_member
    assert kinds() == ["welcome"]
    assert MembershipEvent.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", range(5))
def test_w2_approve_and_confirm_at_once(turn: int, rf) -> None:
    Server.objects.create(name="gpu-1", seats=10)
    admin, application = staff("Alma"), applicant("Nora", confirmed=False)
    at_once(  # and raises what either of them raised
        [
            lambda: waitlist.approve(applications=[application.pk], actor=admin),
            lambda: confirm(application.user, rf),
        ]
    )
    assert User.objects.get(pk=application.user_id).is_member
    assert kinds() == ["welcome"]
    assert MembershipEvent.objects.filter(action="activated").count() == 1


def test_a_confirmation_that_did_not_tell_us_is_found_by_the_sweep(
    admin: User, seats: Server
) -> None:
    user = let_in(applicant("Nora", confirmed=False), by=admin)
    EmailAddress.objects.filter(user=user).update(verified=True)
    assert [row.user_id for row in membership.activate_confirmed()] == [user.pk]
    assert membership.activate_confirmed() == []


@pytest.mark.parametrize("state", ["outsider", "waiting", "rejected", "unconfirmed", "suspended"])
def test_nobody_but_a_member_gets_to_the_key(
    state: str, admin: User, seats: Server, no_wait: None
) -> None:
    user = person("Otto") if state == "outsider" else None
    if user is None:
        application = applicant("Otto", confirmed=state != "unconfirmed")
        user = application.user
        if state == "rejected":
            waitlist.reject(applications=[application.pk], actor=admin, reason_code="unclear")
        if state in ("unconfirmed", "suspended"):
            let_in(application, by=admin)
        if state == "suspended":
            row = Membership.objects.get(user=user)
            membership.suspend(membership=row, actor=admin, reason="abuse")
    client = signed_in(User.objects.get(pk=user.pk))
    assert client.post("/key/create/").status_code in (302, 403, 404)
    assert client.get("/key/").status_code in (302, 403)
    assert Key.objects.count() == 0


# -- Suspension -------------------------------------------------------------------------------
def test_a4_suspension_ends_open_sessions_and_password_reset_does_not_help(
    member: User, admin: User, mailbox
) -> None:
    keys.request_key(user=member, public_key=b"0" * 32)
    client = Client()
    client.post("/accounts/login/", {"login": member.email, "password": PASSWORD})
    assert client.get("/account/").status_code == 200
    client.post("/accounts/password/reset/", {"email": member.email})
    outbox.send_due()
    reset = mailbox.mails.pop()["Subject"], Mail.objects.get(kind="reset")
    path = letters.compose(reset[1]).body.split("http://127.0.0.1:8000")[1].split()[0]

    row = Membership.objects.get(user=member)
    membership.suspend(membership=row, actor=admin, reason="sold the key")

    assert client.get("/account/")["Location"] == "/accounts/login/?next=/account/"
    assert not UserSession.objects.filter(user=member).exists()
    assert KeyHolder.objects.get(member=member).held
    # the link of before: she may choose a password, and still does not come in
    form = client.get(path, follow=True)
    new = "another horse battery staple"
    client.post(form.request["PATH_INFO"], {"password1": new, "password2": new})
    client.post("/accounts/login/", {"login": member.email, "password": new})
    assert client.get("/account/").status_code == 302
    # and there is no new link
    Mail.objects.all().delete()
    client.post("/accounts/password/reset/", {"email": member.email})
    assert Mail.objects.count() == 0
    member = User.objects.get(pk=member.pk)
    assert not member.is_member


def test_suspension_once_and_back(member: User, admin: User) -> None:
    row = Membership.objects.get(user=member)
    membership.suspend(membership=row, actor=admin, reason="abuse")
    with pytest.raises(membership.NotPossible):
        membership.suspend(membership=row, actor=admin, reason="abuse")
    membership.reinstate(membership=row, actor=admin)
    assert User.objects.get(pk=member.pk).is_member
    assert not KeyHolder.objects.get(member=member).held
    events = list(MembershipEvent.objects.order_by("pk").values_list("action", "actor__email"))
    assert events[1:] == [("suspended", admin.email), ("reinstated", admin.email)]


# -- Leaving ----------------------------------------------------------------------------------
def test_leaving_erases_her_and_waits_for_the_gateway(member: User) -> None:
    public_id = member.public_id
    keys.request_key(user=member, public_key=b"0" * 32)
    client = signed_in(member)
    wrong = client.post("/account/leave/", {"email": "someone@example.org"})
    assert wrong.status_code == 200
    goodbye = client.post("/account/leave/", {"email": member.email}, follow=True)
    assert "Pending" in goodbye.content.decode()
    assert_no_trace("mara", "Mara", "knitting")
    assert client.get("/account/").status_code == 302
    assert membership.erase_left() == 0

    Key.objects.update(state="deleted")  # the gateway worker has confirmed
    KeyHolder.objects.update(due_at=None)
    assert membership.erase_left() == 1
    page = client.get(goodbye.request["PATH_INFO"])
    assert "Done" in page.content.decode()
    assert Membership.objects.get().user is None
    assert KeyHolder.objects.get(pk=public_id).member is None


def assert_no_trace(*words: str) -> None:
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(
                f'SELECT count(*) FROM "{table}" t WHERE t::text ~ %s', ["|".join(words)]
            )
            assert (table, cursor.fetchone()[0]) == (table, 0)


def test_someone_who_never_was_a_member_is_gone_at_once(outsider: User) -> None:
    page = signed_in(outsider).post("/account/leave/", {"email": outsider.email}, follow=True)
    assert "Done" in page.content.decode()
    assert_no_trace("otto")
    assert not User.objects.filter(pk=outsider.pk).exists()


def test_staff_do_not_leave_by_themselves(admin: User) -> None:
    signed_in(admin).post("/account/leave/", {"email": admin.email})
    assert User.objects.filter(pk=admin.pk, is_staff=True).exists()


def test_export_holds_what_we_know(member: User) -> None:
    response = signed_in(member).get("/account/export/")
    data = json.loads(response.content)
    assert response["Content-Disposition"].startswith("attachment")
    assert data["account"]["email"] == "mara@example.org"
    assert data["applications"][0]["builds"].startswith("A compiler")
    assert data["decisions"][0]["action"] == "approve"
    assert data["membership"]["state"] == "active"
    assert [mail["kind"] for mail in data["mails"]] == ["welcome"]
    assert "password" not in data["account"]


def test_an_open_session_row_is_deleted_with_the_suspension(member: User, admin: User) -> None:
    client = Client()
    client.post("/accounts/login/", {"login": member.email, "password": PASSWORD})
    client.get("/account/")
    row = UserSession.objects.get(user=member)
    membership.suspend(membership=Membership.objects.get(user=member), actor=admin, reason="abuse")
    assert not Session.objects.filter(session_key=row.session_key).exists()
    assert Application.objects.count() == 1


def test_undo_after_a_suspension_is_refused_and_strands_nobody(admin: User, seats: Server) -> None:
    application = applicant("Nora")
    outcome = waitlist.approve(applications=[application.pk], actor=admin)
    row = Membership.objects.get(user=application.user)
    membership.suspend(membership=row, actor=admin, reason="abuse")
    page = signed_in(admin).post("/staff/waitlist/undo/", {"batch": outcome.batch}, follow=True)
    assert "Not undone: Nora is suspended" in page.content.decode()
    row.refresh_from_db()
    assert row.state == Membership.State.SUSPENDED
    membership.reinstate(membership=row, actor=admin)
    assert len(waitlist.undo(decisions=[outcome.decisions[0].pk], actor=admin)) == 1
    assert let_in(application, by=admin).is_member


def test_approving_ends_a_suspension_whose_membership_is_gone(admin: User, seats: Server) -> None:
    application = applicant("Nora")
    MembershipEvent.objects.create(user=application.user, action="suspended")
    User.objects.filter(pk=application.user_id).update(is_active=False)
    assert let_in(application, by=admin).is_member
