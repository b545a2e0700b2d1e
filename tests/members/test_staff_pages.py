"""The admins' pages: who gets there, what they do, what they cost."""

import json
import re
from collections.abc import Callable

import pytest
from django.conf import settings
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from inference.models import Server
from members import membership, outbox, waitlist
from members.models import Application, Decision, Mail, Membership, User
from tests.people import ANSWERS, PASSWORD, applicant, let_in, person, signed_in

pytestmark = pytest.mark.django_db

PAGES = [
    "/staff/",
    "/staff/waitlist/",
    "/staff/members/",
    "/admin/",
    "/admin/members/user/",
    "/admin/members/application/",
    "/admin/members/decision/",
    "/admin/members/membership/",
    "/admin/members/membershipevent/",
    "/admin/members/mail/",
    "/admin/account/emailaddress/",
    "/admin/mfa/authenticator/",
    "/admin/socialaccount/socialaccount/",
    "/admin/usersessions/usersession/",
]


def decide(client: Client, action: str, *rows: Application, **more: str) -> str:
    data = {"application": [row.pk for row in rows], "action": action, **more}
    return client.post("/staff/waitlist/decide/", data, follow=True).content.decode()


# -- Who gets there ---------------------------------------------------------------------------
@pytest.mark.parametrize("page", PAGES)
def test_only_staff_with_a_second_factor(page: str, admin: User, outsider: User) -> None:
    bare = person("Berta", is_staff=True, is_superuser=True)
    assert Client().get(page).status_code == 302
    assert signed_in(outsider).get(page, follow=True).status_code == 403
    assert signed_in(bare).get(page, follow=True).request["PATH_INFO"] == "/accounts/2fa/"
    assert signed_in(admin).get(page).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "waitlist/decide/",
        "waitlist/undo/",
        "mails/retry/",
        "members/1/suspend/",
        "members/1/reinstate/",
        "members/1/limits/",
    ],
)
def test_only_staff_act(path: str, member: User) -> None:
    assert signed_in(member).post(f"/staff/{path}").status_code == 403


def test_header_of_staff_leads_to_one_waitlist(admin: User, outsider: User) -> None:
    header = re.compile(r"<header.*?</header>", re.DOTALL)
    for user, link in ((admin, False), (outsider, True)):
        page = signed_in(user).get("/account/").content.decode()
        assert ('href="/waitlist/"' in header.findall(page)[0]) is link


# -- What they do -----------------------------------------------------------------------------
def test_approve_several_and_undo_them(admin: User, seats: Server) -> None:
    client, rows = signed_in(admin), [applicant(f"P{n}") for n in range(3)]
    page = decide(client, "approve", *rows)
    assert "3 people approved." in page
    assert Membership.objects.count() == 3
    batch = Decision.objects.first().batch
    page = client.post("/staff/waitlist/undo/", {"batch": batch}, follow=True).content.decode()
    assert "3 decisions undone." in page
    assert Membership.objects.count() == 0
    assert Application.objects.waiting().count() == 3


def test_the_second_admin_is_told_who_was_first(
    admin: User, other_admin: User, waiting: Application, seats: Server
) -> None:
    decide(signed_in(admin), "approve", waiting)
    page = decide(signed_in(other_admin), "reject", waiting, reason_code="unclear")
    assert "Wanda: Alma was first (approved)." in page
    assert Decision.objects.count() == 1


def test_reject_with_a_template_and_she_reads_it(
    admin: User, waiting: Application, no_wait: None, mailbox
) -> None:
    decide(signed_in(admin), "reject", waiting, reason_code="capacity")
    assert "carry what you need" in signed_in(waiting.user).get("/waitlist/").content.decode()
    outbox.send_due()
    assert "carry what you need" in mailbox.mails[0].get_body(("plain",)).get_content()
    hers = signed_in(waiting.user)
    assert hers.get("/waitlist/").context["form"]["builds"].value() == ANSWERS["builds"]
    hers.post("/waitlist/", ANSWERS)
    again = Application.objects.waiting().get()
    detail = signed_in(admin).get(f"/staff/waitlist/{again.pk}/").content.decode()
    assert "carry what you need" in detail


def test_a_rejection_shows_only_when_it_is_final(admin: User, waiting: Application) -> None:
    decide(signed_in(admin), "reject", waiting, reason_code="capacity")
    assert "among the next 20" in signed_in(waiting.user).get("/waitlist/").content.decode()


def test_reject_without_a_reason_changes_nothing(admin: User, waiting: Application) -> None:
    page = decide(signed_in(admin), "reject", waiting, reason_code="other", reason=" ")
    assert "Write the reason" in page
    assert Application.objects.get().state == "pending"


def test_ask_and_answer(admin: User, waiting: Application) -> None:
    decide(signed_in(admin), "ask", waiting, question="Which language?")
    hers = signed_in(waiting.user)
    assert "Which language?" in hers.get("/waitlist/").content.decode()
    hers.post("/waitlist/answer/", {"answer": "Python"})
    assert Application.objects.get().answer == "Python"


def test_beyond_capacity_asks_once_more(admin: User, waiting: Application) -> None:
    client = signed_in(admin)
    page = decide(client, "approve", waiting)
    assert "Nobody has been approved yet" in page
    assert Membership.objects.count() == 0
    decide(client, "approve", waiting, beyond_capacity="yes")
    assert Membership.objects.count() == 1


def test_suspend_reinstate_and_limits(admin: User, member: User) -> None:
    client, row = signed_in(admin), Membership.objects.get()
    assert client.post(f"/staff/members/{row.pk}/suspend/", {"reason": ""}).status_code == 422
    client.post(f"/staff/members/{row.pk}/suspend/", {"reason": "sold the key"})
    assert Membership.objects.get().state == "suspended"
    page = client.get(f"/staff/members/{row.pk}/").content.decode()
    assert "sold the key" in page
    client.post(f"/staff/members/{row.pk}/reinstate/")
    assert Membership.objects.get().state == "active"
    client.post(f"/staff/members/{row.pk}/limits/", {"rpm": 20, "parallel": "", "reason": "ok"})
    member.key_holder.refresh_from_db()
    assert (member.key_holder.own_rpm, member.key_holder.own_parallel) == (20, None)


def test_suspended_member_reads_why_she_does_not_get_in(admin: User, member: User) -> None:
    membership.suspend(membership=member.membership, actor=admin, reason="sold the key")
    client = Client(headers={"accept-language": "en"})
    data = {"login": member.email, "password": PASSWORD}
    page = client.post("/accounts/login/", data, follow=True)
    assert page.request["PATH_INFO"] == "/accounts/inactive/"
    html = page.content.decode()
    assert "your membership is suspended and your keys are stopped" in html
    assert f"mailto:{settings.CONTACT_EMAIL}" in html


def test_nobody_suspends_herself(admin: User, seats: Server) -> None:
    waitlist.apply(user=admin, **ANSWERS)
    let_in(Application.objects.get(), by=admin)
    row = Membership.objects.get()
    signed_in(admin).post(f"/staff/members/{row.pk}/suspend/", {"reason": "x"})
    assert Membership.objects.get().state == "active"


def test_decided_rows_can_be_neither_changed_nor_deleted(
    admin: User, waiting: Application, seats: Server
) -> None:
    let_in(waiting, by=admin)
    client = signed_in(admin)
    for model, row in (("decision", Decision.objects.get()), ("application", waiting)):
        base = f"/admin/members/{model}/{row.pk}/"
        assert client.get(f"{base}change/").status_code == 200
        assert client.post(f"{base}change/", {}).status_code == 403
        assert client.post(f"{base}delete/", {"post": "yes"}).status_code == 403


def test_going_back_stays_on_the_site(admin: User, waiting: Application) -> None:
    for target in ("https://evil.example/", "//evil.example/", "/staff/waitlist/\\evil"):
        answer = signed_in(admin).post("/staff/waitlist/decide/", {"next": target})
        assert answer["Location"] == "/staff/waitlist/"


# -- What they cost ---------------------------------------------------------------------------
def queries(client: Client, page: str) -> int:
    client.get(page)  # fills the cached counts
    with CaptureQueriesContext(connection) as captured:
        assert client.get(page).status_code == 200
    return len(captured)


def many(admin: User, count: int) -> None:
    """Waiting people with an earlier rejection, and members; each row of a page has everything."""
    for n in range(count):
        first = applicant(f"W{n}")
        waitlist.reject(applications=[first.pk], actor=admin, reason_code="unclear")
        Decision.objects.update(final_at=first.applied_at)
        waitlist.apply(user=first.user, **ANSWERS)
        let_in(applicant(f"M{n}"), by=admin)


def test_queries_do_not_grow_from_one_row_to_fifty(admin: User, seats: Server) -> None:
    client = signed_in(admin)
    many(admin, 1)
    few = {page: queries(client, page) for page in PAGES}
    User.objects.filter(email__regex="^[wm]0@").delete()
    cache.clear()
    many(admin, 50)
    assert {page: queries(client, page) for page in PAGES} == few


def test_pages_follow_one_another(admin: User) -> None:
    users = User.objects.bulk_create([User(email=f"p{n}@example.org") for n in range(120)])
    Application.objects.bulk_create([Application(user=user, builds="x") for user in users])
    client = signed_in(admin)
    seen: list[int] = []
    query = ""
    while True:
        context = client.get(f"/staff/waitlist/{query}").context
        seen += [row.pk for row in context["rows"]]
        if not context["following"]:
            break
        query = f"?after={context['following']}"
    assert seen == sorted(Application.objects.values_list("pk", flat=True))
    back = client.get(f"/staff/waitlist/?before={seen[100]}").context
    assert [row.pk for row in back["rows"]] == seen[50:100]
    found = client.get("/staff/waitlist/?q=P11").context["rows"]
    assert len(found) == 11


# -- The same by command ----------------------------------------------------------------------
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., object]:
    def command(*words: str) -> object:
        call_command(*words, "--json")
        return json.loads(capsys.readouterr().out)

    return command


def test_commands(
    admin: User, waiting: Application, seats: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    command, email = run(capsys), "wanda@example.org"
    assert [row["email"] for row in command("waitlist", "list")] == [email]
    assert command("waitlist", "approve", email)[0]["state"] == "approved"
    assert command("members", "list")[0]["state"] == "active"
    row = command("members", "suspend", email, "--reason", "abuse", "--as", admin.email)[0]
    assert (row["state"], row["pending"]) == ("suspended", False)
    assert command("members", "reinstate", email)[0]["state"] == "active"
    assert command("members", "erase", email)[0]["state"] == "left"
    with pytest.raises(CommandError, match="Not waiting"):
        command("waitlist", "reject", email)
    with pytest.raises(CommandError, match="not an admin"):
        command("members", "suspend", email, "--reason", "abuse", "--as", email)


def test_first_admin_once(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("first_admin", "--json")
    found = json.loads(capsys.readouterr().out)
    user = User.objects.get()
    assert (user.email, user.is_staff, user.is_superuser) == (found["email"], True, True)
    client = Client()
    client.post("/accounts/login/", {"login": found["email"], "password": found["password"]})
    assert client.get("/staff/")["Location"] == "/accounts/2fa/"
    call_command("first_admin", "--json")
    assert capsys.readouterr().out == ""
    assert (PASSWORD, Mail.objects.count(), membership.erase_left()) == (PASSWORD, 0, 0)


def test_large_numbers_keep_working_as_ids(admin: User, seats: Server) -> None:
    """Numbers on pages have separators; ids in forms and links must not."""
    with connection.cursor() as cursor:
        for table in ("application", "mail", "membership"):
            cursor.execute(f"SELECT setval('members_{table}_id_seq', 1234567)")
    for n in range(51):
        applicant(f"P{n}")
    client = signed_in(admin)
    page = client.get("/staff/waitlist/").content.decode()
    values = re.findall(r'name="application"\s+value="([^"]+)"', page)
    client.post("/staff/waitlist/decide/", {"application": values, "action": "approve"})
    assert Membership.objects.count() == 50
    assert re.search(r"after=1234617\b", page)
    Mail.objects.update(state="failed")
    assert re.search(r'name="mail"\s+value="1234', client.get("/staff/").content.decode())
