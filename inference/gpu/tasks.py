"""Celery tasks of a GPU host, on its queue `gpu.NAME`. Each returns within seconds, may come
twice or late, and ends with a report to the fleet."""

from collections.abc import Callable
from typing import Any

import structlog
from celery import shared_task
from kombu.exceptions import OperationalError

from inference.gpu import fetching, preflight, report
from inference.gpu.drivers import choose
from inference.gpu.engines import Engines
from inference.gpu.host import Host, HostError
from inference.gpu.state import HostState
from nan.celery import app

log = structlog.get_logger(__name__)

REPORT_EXPIRES = 60


@shared_task
def gpu_report(server: str) -> None:
    _do(server, lambda host, state, engines: None)


@shared_task
def gpu_start(server: str, spec: Any) -> None:
    _do(server, lambda host, state, engines: engines.start(spec))


@shared_task
def gpu_stop(server: str, instance: str, seconds: int) -> None:
    """`seconds` from the first SIGTERM to SIGKILL."""
    _do(server, lambda host, state, engines: engines.stop(instance, seconds))


@shared_task
def gpu_forget(server: str, instance: str) -> None:
    _do(server, lambda host, state, engines: engines.forget(instance))


@shared_task
def gpu_preflight(server: str, request: str, spec: Any) -> None:
    _do(server, lambda host, state, engines: preflight.begin(state, request=request, spec=spec))


@shared_task
def gpu_fetch(server: str, repo: str, revision: str, disk_mib: int) -> None:
    _do(
        server,
        lambda host, state, engines: fetching.begin(
            host, state, repo=repo, revision=revision, disk_mib=disk_mib
        ),
    )


def _do(server: str, act: Callable[[Host, HostState, Engines], None]) -> None:
    host = Host.from_environ()
    if server != host.name:
        raise HostError(f"This host is {host.name}; the message was for another one.")
    state = HostState(host.state)
    engines = Engines(host, state, choose(host))
    with state.locked():
        try:
            act(host, state, engines)
        except (ValueError, TypeError, OverflowError) as error:
            # Arguments that nobody of ours sends.
            log.warning("gpu_task_refused", error=type(error).__name__)
        found = report.build(host, state, engines)
    _publish(host, found)


def _publish(host: Host, found: dict[str, Any]) -> None:
    """A report that does not arrive is followed by the next one."""
    try:
        app.send_task(
            "inference.tasks.fleet_take_report",
            (host.name, found),
            queue="fleet",
            expires=REPORT_EXPIRES,
            retry=False,
        )
    except OperationalError:
        log.warning("report_not_sent", server=host.name)
