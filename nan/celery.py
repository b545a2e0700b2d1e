"""The Celery application, and the one way in which the web publishes a task."""

import os
from typing import Any

from celery import Celery
from django.db import transaction

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nan.settings")

app = Celery("nan")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(["inference.gpu"])


def enqueue(task: str, *args: Any, expires: float | None = None) -> None:
    """Publish a task by its name once the current transaction has committed; at once outside one.

    A rolled-back request publishes nothing. A broker that is down breaks nothing either: the
    failure is logged, the row stays due, and the next sweep on the beat publishes it again. So
    only tasks whose row is swept may be enqueued this way.

    By its name, so that a feature needs no import of the tasks, which import the features.
    """
    transaction.on_commit(
        lambda: app.send_task(task, args, retry=False, expires=expires), robust=True
    )
