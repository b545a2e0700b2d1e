"""Queries of each page, in this process against the stack's own database."""

from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

PAGES = {"landing": "/", "waitlist": "/staff/waitlist/", "key": "/key/"}


def queries(member_session: str, admin_session: str) -> dict[str, int]:
    sessions = {"landing": "", "waitlist": admin_session, "key": member_session}
    return {name: _count(path, sessions[name]) for name, path in PAGES.items()}


def _count(path: str, session: str) -> int:
    """With nothing kept from before: what is cached for a while counts too."""
    client = Client(SERVER_NAME="127.0.0.1", HTTP_X_FORWARDED_FOR="127.0.0.1")
    client.cookies["session"] = session
    client.get(path)
    cache.clear()
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(path)
    assert answer.status_code == 200, f"{path}: {answer.status_code}"
    return len(captured)
