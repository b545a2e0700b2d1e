"""One process at a time, by Postgres' advisory locks."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import Error, connection


@contextmanager
def alone(lock: int) -> Iterator[bool]:
    """False if another is at it. The lock belongs to the connection: a killed holder frees it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [lock])
        free: bool = cursor.fetchone()[0]
    try:
        yield free
    finally:
        if free:
            with suppress(Error), connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [lock])
