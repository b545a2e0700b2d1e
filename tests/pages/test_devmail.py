"""Mail of the local stack: written whole, in order, for its owner only; shown without harm."""

import re
import stat
from pathlib import Path

import pytest
from django.core.mail import EmailMultiAlternatives, get_connection
from django.test import Client
from pytest_django import Settings

from tests.pages.markup import faults
from tests.pages.test_pages import policy

pytestmark = pytest.mark.django_db
LINK = "http://127.0.0.1:8000/accounts/confirm-email/abc/"


@pytest.fixture
def folder(settings: Settings, tmp_path: Path) -> Path:
    settings.EMAIL_FILE_PATH = str(tmp_path / "mail")
    return tmp_path / "mail"


def send(subject: str, text: str = f"Hello\n{LINK}", html: str = "<p>Hello <b>you</b></p>") -> None:
    mail = EmailMultiAlternatives(
        subject,
        text,
        "NaN <hello@example.org>",
        ["ana@example.org"],
        connection=get_connection("nan.devmail.EmlBackend"),
    )
    mail.attach_alternative(html, "text/html")
    assert mail.send() == 1


def test_files_are_private_and_sort_by_time(folder: Path) -> None:
    for subject in ("first", "second", "third"):
        send(subject)
    files = sorted(folder.iterdir())
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 3
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [
        f"Subject: {word}" in file.read_text()
        for word, file in zip(("first", "second", "third"), files, strict=True)
    ] == [True] * 3
    assert {file.suffix for file in files} == {".eml"}


def test_list_shows_the_newest_first(folder: Path, client: Client) -> None:
    send("Primero: señal")
    send("Segundo")
    response = client.get("/dev/mail/", headers={"accept-language": "en"})
    html = response.content.decode()
    assert html.index("Segundo") < html.index("Primero: señal")
    assert faults(response, language="en") == []


def test_mail_shows_clickable_text_and_framed_html(folder: Path, client: Client) -> None:
    send("Confirm")
    name = next(folder.iterdir()).stem
    response = client.get(f"/dev/mail/{name}/", headers={"accept-language": "en"})
    html = response.content.decode()
    assert "<dt>To</dt><dd>ana@example.org</dd>" in html
    assert f'<a href="{LINK}"' in html
    assert f'src="/dev/mail/{name}/html/"' in html
    assert "<b>you</b>" not in html
    assert faults(response, language="en") == []
    assert policy(response["Content-Security-Policy"])["frame-src"] == "'self'"


def test_a_mail_speaks_the_readers_language(folder: Path, client: Client) -> None:
    send("Confirm")
    name = next(folder.iterdir()).stem
    html = client.get(f"/dev/mail/{name}/", headers={"accept-language": "es"}).content.decode()
    assert re.search(r"<dt>Enviado</dt><dd>\d+ de \w+ de \d{4} a las", html)


def test_markup_in_the_text_part_is_only_text(folder: Path, client: Client) -> None:
    send("<i>subject</i>", text="<script>alert(1)</script>")
    html = client.get(f"/dev/mail/{next(folder.iterdir()).stem}/").content.decode()
    assert "<script>alert" not in html
    assert "<i>subject" not in html


def test_html_part_stands_in_a_sandbox(folder: Path, client: Client) -> None:
    send("Confirm", html="<p>Hello</p><script>alert(1)</script>")
    response = client.get(f"/dev/mail/{next(folder.iterdir()).stem}/html/")
    assert "<p>Hello</p>" in response.content.decode()
    assert response["X-Frame-Options"] == "SAMEORIGIN"
    assert policy(response["Content-Security-Policy"]) == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "form-action": "'none'",
        "frame-ancestors": "'self'",
        "sandbox": "allow-popups allow-popups-to-escape-sandbox",
    }


@pytest.mark.parametrize("name", ["nothing", "..%2f..%2fetc%2fpasswd", "../settings"])
def test_no_other_file_is_shown(folder: Path, client: Client, name: str) -> None:
    send("Confirm")
    assert client.get(f"/dev/mail/{name}/").status_code == 404


def test_exists_in_the_local_stack_only(folder: Path, client: Client, settings: Settings) -> None:
    send("Confirm")
    settings.LOCAL_STACK = False
    name = next(folder.iterdir()).stem
    paths = ["/dev/mail/", f"/dev/mail/{name}/", f"/dev/mail/{name}/html/"]
    assert [client.get(path).status_code for path in paths] == [404, 404, 404]
