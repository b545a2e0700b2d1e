"""What GPU servers are told, by messages on their own queues.

A message may be lost, late or doubled: each says what should be, not what to do once, and is sent
again while the server's report doesn't show it. A late one is dropped (`expires`).
"""

from typing import Any

import structlog
from django.conf import settings
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from inference.gpu.spec import EngineSpec
from inference.models import Server
from nan.celery import app

log = structlog.get_logger(__name__)

EXPIRES = 15
AGAIN = 3.0
"""Seconds between two sendings of the same."""
UNREAD = 60
"""So many messages wait for no server that reads them: nearly all of these have expired."""


def start(server: Server, spec: EngineSpec) -> None:
    _send(server, "gpu_start", server.name, spec.to_json())


def stop(server: Server, instance: str) -> None:
    _send(server, "gpu_stop", server.name, instance, settings.ENGINE_KILL_SECONDS)


def forget(server: Server, instance: str) -> None:
    _send(server, "gpu_forget", server.name, instance)


def preflight(server: Server, request: str, spec: EngineSpec) -> None:
    _send(server, "gpu_preflight", server.name, request, spec.to_json())


def fetch(server: Server, repo: str, revision: str, disk_mib: int) -> None:
    _send(server, "gpu_fetch", server.name, repo, revision, disk_mib)


def report(server: Server) -> None:
    """Of a server that is away for a month, no month's messages wait."""
    if _waiting(server) > UNREAD:
        drop_queue(server)
    _send(server, "gpu_report", server.name, expires=5)


def _waiting(server: Server) -> int:
    try:
        with app.connection_or_acquire() as connection:
            return int(connection.default_channel.queue_declare(server.queue).message_count)
    except (OperationalError, RedisError):
        return 0


def drop_queue(server: Server) -> None:
    """Nobody reads what waits there; what is still meant is sent again."""
    try:
        with app.connection_or_acquire() as connection:
            connection.default_channel.queue_purge(server.queue)
    except (OperationalError, RedisError):
        log.warning("queue_not_dropped", server=server.name)


def _send(server: Server, task: str, *arguments: Any, expires: int = EXPIRES) -> None:
    """A broker that is away is no fault of the replica: the next round sends again."""
    try:
        app.send_task(
            f"inference.gpu.tasks.{task}",
            arguments,
            queue=server.queue,
            expires=expires,
            retry=False,
        )
    except OperationalError:
        log.warning("server_not_told", server=server.name, task=task)
