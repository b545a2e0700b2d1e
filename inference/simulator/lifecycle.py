"""From start to exit: checks, load time, serving, and what SIGTERM does.

Measured on vLLM 0.32.0 and followed here: the port opens when loading is over; a SIGTERM within
the first five seconds of loading exits 143, later the first one is lost; with
`--shutdown-timeout` streams finish while `/health` stays 200 and new requests get 500; exit 0.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator

import uvicorn

from inference.simulator import startup
from inference.simulator.engine import Engine
from inference.simulator.faults import ProcessFault
from inference.simulator.flags import Options
from inference.simulator.server import Application
from inference.simulator.settings import Settings

_EARLY_SECONDS = 5.0
_TICK = 0.02


def run(*, options: Options, settings: Settings) -> int:
    """The exit status."""
    if not startup.check(options=options, settings=settings):
        return 1
    listener = startup.bind(options)
    if listener is None:
        return 1
    _load(options, settings)
    if not startup.check_memory(options=options, settings=settings):
        return 1
    asyncio.run(_serve(options, settings, listener))
    return 0


def _load(options: Options, settings: Settings) -> None:
    began, lost = time.monotonic(), False

    def on_term(*_: object) -> None:
        nonlocal lost
        if lost or time.monotonic() - began < _EARLY_SECONDS:
            os._exit(128 + signal.SIGTERM)
        lost = True

    signal.signal(signal.SIGTERM, on_term)
    startup.say(f"Loading {options.model} as {', '.join(options.served_names)}")
    for percent in (25, 50, 75, 100):
        time.sleep(settings.load_seconds / 4)
        startup.say(f"Loading safetensors checkpoint shards: {percent}% Completed")


class _Server(uvicorn.Server):
    """Uvicorn without its signal handlers; ours decide what a SIGTERM means."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(options: Options, settings: Settings, listener: socket.socket) -> None:
    engine = Engine(options, settings)
    application = Application(engine)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # a cut is meant, not an error
    config = uvicorn.Config(
        application, http="h11", ws="none", lifespan="off", log_config=None, access_log=False
    )
    server = _Server(config)
    term = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, term.set)
    stopper = asyncio.create_task(_stop_on(term, server, application))
    startup.say(f"Starting server on {options.uds or f'http://{options.host}:{options.port}'}")
    await server.serve(sockets=[listener])
    stopper.cancel()
    startup.say("Shut down.")


async def _stop_on(term: asyncio.Event, server: _Server, application: Application) -> None:
    engine = application.engine
    await term.wait()
    while ProcessFault.IGNORE_SIGTERM in engine.settings.faults:
        await asyncio.sleep(3600)
    if ProcessFault.HALF_DEAD_ON_SIGTERM in engine.settings.faults and application.traffic.running:
        engine.frozen = True
        for listening in server.servers:
            listening.close()
        await _until_idle(application, seconds=float("inf"))
    elif engine.options.shutdown_timeout > 0:
        engine.stopping = True
        await _until_idle(application, seconds=engine.options.shutdown_timeout)
        await asyncio.sleep(engine.settings.stop_seconds)
    server.should_exit = server.force_exit = True


async def _until_idle(application: Application, *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while application.traffic.running and time.monotonic() < deadline:
        await asyncio.sleep(_TICK)
