"""The Celery application, and the one way in which the web publishes a task."""

import os
from typing import Any

from celery import Celery, Task
from django.db import transaction

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nan.settings")

app = Celery("nan")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(["inference.gpu"])


def enqueue(task: Task[Any, Any], *args: Any) -> None:
    """Publish `task` once the current transaction has committed; at once outside of one.

    A rolled-back request publishes nothing. A broker that is down breaks nothing either: the
    failure is logged, the row stays due, and the next sweep on the beat publishes it again. So
    only tasks whose row is swept may be enqueued this way.
    """
    transaction.on_commit(lambda: task.apply_async(args, retry=False), robust=True)
