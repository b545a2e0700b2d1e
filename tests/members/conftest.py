from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.fakes.smtp import SmtpServer, smtp_server


@pytest.fixture(autouse=True)
def _site(settings: Settings) -> None:
    """Links in mails begin like this, wherever the tests' services run."""
    settings.SITE_URL = "http://127.0.0.1:8000"


@pytest.fixture
def mailbox(settings: Settings) -> Iterator[SmtpServer]:
    """A real mail server; nothing is sent before `outbox.send_due` or a task does it."""
    with smtp_server() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        settings.EMAIL_TIMEOUT = 3
        yield server


@pytest.fixture
def no_wait(settings: Settings) -> None:
    """Decisions are final at once, so that their mails are due."""
    settings.UNDO_SECONDS = 0
