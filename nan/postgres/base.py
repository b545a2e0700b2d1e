"""Django's database backend for Postgres, with one thing more: who asks while the database is known
to be away hears so at once.

Otherwise each request waits seconds for a connection, and a few dozen of them keep all threads of
the web busy. One of those who ask tries again now and then; when it gets a connection, all do.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db.backends.postgresql import base

PAUSE_SECONDS = 1.0
"""Between two tries, of one at a time."""
TRY_SECONDS = 10.0
"""A try that has not ended by then no longer keeps others from theirs."""


class Away:
    """What this process knows of the database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._away = False
        self._next_try = 0.0

    @contextmanager
    def asking(self) -> Iterator[None]:
        if not self._may_ask():
            raise psycopg.OperationalError("the database could not be had a moment ago")
        try:
            yield
        except psycopg.OperationalError:
            with self._lock:
                self._away, self._next_try = True, time.monotonic() + PAUSE_SECONDS
            raise
        self._away = False

    def _may_ask(self) -> bool:
        with self._lock:
            now = time.monotonic()
            if self._away and now < self._next_try:
                return False
            self._next_try = now + TRY_SECONDS
            return True


away = Away()


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        with away.asking():
            return super().get_new_connection(conn_params)
