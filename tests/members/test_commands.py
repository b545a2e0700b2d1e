"""What an admin can click she can also type: one command a noun, verbs, --json."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from inference.models import KeyHolder
from members.models import Application, Decision, User
from tests.people import applicant

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> list[dict[str, Any]]:
    out = io.StringIO()
    call_command(*arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def states(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {row["email"]: row["state"] for row in rows}


def test_a_question_is_asked(waiting: Application, admin: User) -> None:
    asked = run(
        "waitlist", "ask", waiting.user.email, "--question", "Which GPU?", "--as", admin.email
    )
    assert states(asked) == {waiting.user.email: "needs_information"}
    assert Application.objects.get(pk=waiting.pk).question == "Which GPU?"
    assert Decision.objects.get().actor == admin


def test_approval_and_its_undoing(waiting: Application, seats: object) -> None:
    email = waiting.user.email
    assert states(run("waitlist", "approve", email)) == {email: "approved"}
    assert states(run("waitlist", "undo", email)) == {email: "pending"}
    assert not User.objects.get(email=email).is_member
    with pytest.raises(CommandError, match=r"Nothing to undo for wanda@example\.org"):
        run("waitlist", "undo", email)


def test_undo_of_several_changes_nobody_if_one_is_wrong(seats: object) -> None:
    first = applicant("Frida").user.email
    run("waitlist", "approve", first)
    with pytest.raises(CommandError, match=r"nobody@example\.org"):
        run("waitlist", "undo", first, "nobody@example.org")
    assert User.objects.get(email=first).is_member


def test_limits_of_a_member(member: User) -> None:
    run("members", "limits", member.email, "--rpm", "50", "--reason", "asked for less")
    holder = KeyHolder.objects.get(pk=member.public_id)
    assert (holder.own_rpm, holder.own_parallel) == (50, None)
    with pytest.raises(CommandError, match=r"rpm: .* Nobody was changed"):
        run("members", "limits", member.email, "--rpm", "0", "--reason", "oops")
    assert KeyHolder.objects.get(pk=member.public_id).own_rpm == 50
