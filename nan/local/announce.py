"""Loaded by a Celery worker (`-I`): writes a file once it takes tasks."""

import os
from pathlib import Path
from typing import Any

from celery.signals import worker_ready


@worker_ready.connect
def write_ready_file(**_: Any) -> None:
    if file := os.environ.get("NAN_READY_FILE"):
        Path(file).touch()
