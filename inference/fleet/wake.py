"""Asking for a fleet pass now instead of within the five seconds of the beat. By names of tasks,
so that features don't import the tasks that call them."""

from typing import Any

from django.db import transaction

from nan.celery import app

ROUNDS = "inference.tasks.fleet_pass"
CHECK = "inference.tasks.fleet_check_replica"
WATCH = "inference.tasks.fleet_watch_replica"


def wake_fleet() -> None:
    """After the commit; a broker that is away only makes it later."""
    transaction.on_commit(lambda: send(ROUNDS), robust=True)


def send(task: str, *arguments: Any, expires: int = 20) -> None:
    app.send_task(task, arguments, queue="fleet", expires=expires, retry=False)
