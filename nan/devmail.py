"""Mail on a developer's machine: each mail becomes a file, and /dev/mail/ shows them.

The pages exist in the local stack only (nan.urls, and the guard below): they show everyone's mail.
"""

import email
import email.policy
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from email.message import EmailMessage as ParsedMessage
from functools import wraps
from pathlib import Path

from csp.constants import NONE, SELF
from csp.decorators import csp, csp_update
from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

SHOWN = 200
HTML_POLICY = {
    "default-src": [NONE],
    "style-src": ["'unsafe-inline'"],
    "img-src": ["data:"],
    "form-action": [NONE],
    "frame-ancestors": [SELF],
    "sandbox": ["allow-popups", "allow-popups-to-escape-sandbox"],
}


class EmlBackend(BaseEmailBackend):
    """Writes each mail to EMAIL_FILE_PATH as NAME.eml, names in the order of sending, mode 600."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        folder = mail_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for message in email_messages:
            write(folder, message.message().as_bytes())
        return len(email_messages)


def write(folder: Path, content: bytes) -> Path:
    """Under a hidden name first, so that a reader never sees half a mail."""
    name = f"{timezone.now():%Y%m%dT%H%M%S-%f}-{secrets.token_hex(3)}"
    draft, final = folder / f".{name}", folder / f"{name}.eml"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return draft.rename(final)


def mail_folder() -> Path:
    return Path(settings.EMAIL_FILE_PATH)


@dataclass(frozen=True)
class Mail:
    name: str
    parsed: ParsedMessage

    @property
    def sender(self) -> str:
        return str(self.parsed["From"] or "")

    @property
    def subject(self) -> str:
        return str(self.parsed["Subject"] or "")

    @property
    def to(self) -> str:
        return str(self.parsed["To"] or "")

    @property
    def sent_at(self) -> object:
        header = self.parsed["Date"]
        return header.datetime if header is not None else None

    def body(self, kind: str) -> str:
        """The `plain` or `html` part, or nothing."""
        part = self.parsed.get_body((kind,))
        return str(part.get_content()) if part is not None else ""

    @property
    def text(self) -> str:
        return self.body("plain")

    @property
    def html(self) -> str:
        return self.body("html")


def read(path: Path) -> Mail:
    parsed = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    return Mail(name=path.stem, parsed=parsed)


def newest() -> Iterator[Mail]:
    for path in sorted(mail_folder().glob("*.eml"), reverse=True)[:SHOWN]:
        yield read(path)


def find(name: str) -> Mail:
    """The URL lets only letters, digits, `-` and `_` through: no way out of the folder."""
    path = mail_folder() / f"{name}.eml"
    if not path.is_file():
        raise Http404(name)
    return read(path)


def local_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @require_safe
    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest, **kwargs: str) -> HttpResponse:
        if not settings.LOCAL_STACK:
            raise Http404
        return view(request, **kwargs)

    return guarded


@local_only
def mail_list(request: HttpRequest) -> HttpResponse:
    return render(request, "devmail/list.html", {"mails": list(newest()), "folder": mail_folder()})


@csp_update({"frame-src": [SELF]})
@local_only
def mail_page(request: HttpRequest, name: str) -> HttpResponse:
    return render(request, "devmail/mail.html", {"mail": find(name)})


@csp(HTML_POLICY)
@xframe_options_sameorigin
@local_only
def mail_html(request: HttpRequest, name: str) -> HttpResponse:
    """The HTML part alone, without scripts or network; its links open in a new tab."""
    return HttpResponse(f'<!doctype html><base target="_blank">{find(name).html}')
