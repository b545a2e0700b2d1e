"""What nobody's browser sends: an answer that says so, never a 500."""

import pytest
from django.test import Client

from members.models import Mail, User
from tests.people import signed_in

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("length", [180, 250, 300])
@pytest.mark.parametrize("path", ["/accounts/password/reset/", "/accounts/signup/"])
def test_long_addresses(path: str, length: int) -> None:
    host = ".".join(["x" * 60] * 5)[: length - 14] + ".example"
    answer = Client().post(path, {"email": f"nora@{host}", "password1": "a long one 12345"})
    assert answer.status_code in (200, 302)
    assert Mail.objects.filter(kind="reset").count() == 0


@pytest.mark.parametrize("path", ["login/", "login/callback/"])
def test_github_is_not_there_when_it_is_not_configured(path: str) -> None:
    assert Client().post(f"/accounts/github/{path}").status_code == 404
    assert Client().get(f"/accounts/github/{path}").status_code in (200, 404)


@pytest.mark.parametrize(
    "sent",
    [
        '{"id":"x"}', "[]", '"x"', "7", '{"id":[],"response":{}}', "{",
        '{"id":"x","rawId":"AA","type":"public-key","response":{"clientDataJSON":"e30"}}',
        "[" * 100_000, "9" * 5000, "NaN",
    ],
)  # fmt: skip
def test_malformed_passkeys(sent: str, outsider: User) -> None:
    for client, path in (
        (Client(), "/accounts/2fa/webauthn/login/"),
        (signed_in(outsider), "/accounts/2fa/webauthn/add/"),
        (signed_in(outsider), "/accounts/2fa/webauthn/reauthenticate/"),
    ):
        assert client.post(path, {"credential": sent, "name": "x"}).status_code in (200, 302)


@pytest.mark.parametrize(
    "path",
    [
        "/staff/waitlist/?q=%00",
        "/staff/members/?q=a%00",
        "/admin/members/user/?membership__state=%00",
        "/?x=%00",
    ],
)
def test_nul_is_a_400(path: str, admin: User) -> None:
    assert signed_in(admin).get(path).status_code == 400


def test_nul_in_a_form_and_huge_ids(admin: User) -> None:
    client = signed_in(admin)
    sent = {"application": "1", "action": "ask", "question": "a\0b"}
    assert client.post("/staff/waitlist/decide/", sent).status_code == 302
    assert client.post("/staff/waitlist/decide/", {**sent, "a\0b": ""}).status_code == 400
    for huge in ("9" * 5000, "9" * 19, "²"):
        sent = {"application": huge, "action": "approve"}
        assert client.post("/staff/waitlist/decide/", sent).status_code == 302
        assert client.post("/staff/mails/retry/", {"mail": huge}).status_code == 302
        assert client.get(f"/staff/members/?after={huge}").status_code == 200
