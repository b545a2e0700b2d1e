"""From start to exit: checks, load time, serving, and what SIGTERM does.

Measured on vLLM 0.32.0 and followed here: the port opens when loading is over; a SIGTERM within
the first five seconds of loading exits 143, later the first one is lost; with
`--shutdown-timeout` streams finish while `/health` stays 200 and new requests get 500; exit 0.
"""

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Iterator

import uvicorn

from inference.simulator import loading, memory, startup, templates
from inference.simulator.core import Core
from inference.simulator.engine import Engine
from inference.simulator.faults import ProcessFault
from inference.simulator.flags import Options
from inference.simulator.model import Model
from inference.simulator.server import Application
from inference.simulator.settings import Settings

_TICK = 0.02
_CORE_TICK = 0.1


def run(*, options: Options, settings: Settings, model: Model) -> int:
    """The exit status."""
    if not startup.check(options=options, settings=settings, model=model):
        return 1
    listener = startup.bind(options)
    if listener is None or startup.fail_for(memory.shortage(settings)):
        return 1
    memory.take(settings)
    core = Core(not_for_it=listener) if settings.engine_core else None
    try:
        loading.load(options, settings, give_up=core.end if core else lambda: None)
        if not startup.check_cache(options=options, settings=settings):
            return 1
        loading.announce_cache(options, settings)
        if startup.fail_for(templates.broken(options, settings, model)):
            return 1
        asyncio.run(_serve(Engine(options, settings), listener, core))
    finally:
        if core:
            core.end()
    return 0


class _Server(uvicorn.Server):
    """Uvicorn without its signal handlers; ours decide what a SIGTERM means."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(engine: Engine, listener: socket.socket, core: Core | None) -> None:
    options = engine.options
    application = Application(engine)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # a cut is meant, not an error
    config = uvicorn.Config(
        application, http="h11", ws="none", lifespan="off", log_config=None, access_log=False
    )
    server = _Server(config)
    term = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, term.set)
    tasks = [
        asyncio.create_task(_stop_on(term, server, application)),
        asyncio.create_task(_end_with_core(core, server, engine)),
    ]
    startup.say(f"Starting vLLM server on {options.uds or f'http://{options.host}:{options.port}'}")
    await server.serve(sockets=[listener])
    for task in tasks:
        task.cancel()
    startup.say("Shut down.")


async def _stop_on(term: asyncio.Event, server: _Server, application: Application) -> None:
    engine = application.engine
    await term.wait()
    while ProcessFault.IGNORE_SIGTERM in engine.settings.faults:
        await asyncio.sleep(3600)
    if ProcessFault.HALF_DEAD_ON_SIGTERM in engine.settings.faults:
        engine.frozen = True
        for listening in server.servers:
            listening.close()
        while not application.traffic.running:
            await asyncio.sleep(3600)
        await _until_idle(application, seconds=float("inf"))
    elif engine.options.shutdown_timeout > 0:
        engine.stopping = True
        await _until_idle(application, seconds=engine.options.shutdown_timeout)
        await asyncio.sleep(engine.settings.stop_seconds)
    server.should_exit = server.force_exit = True


async def _end_with_core(core: Core | None, server: _Server, engine: Engine) -> None:
    """`/health` turns 503, a moment later the server exits, with 0."""
    if ProcessFault.CORE_DIES in engine.settings.faults:
        await asyncio.sleep(engine.settings.core_dies_after)
    elif core is None:
        return
    else:
        while not core.has_died():
            await asyncio.sleep(_CORE_TICK)
    startup.say("AsyncLLM output_handler failed. EngineDeadError: EngineCore encountered an issue.")
    engine.dead = True
    await asyncio.sleep(engine.settings.core_dead_seconds)
    server.should_exit = server.force_exit = True


async def _until_idle(application: Application, *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while application.traffic.running and time.monotonic() < deadline:
        await asyncio.sleep(_TICK)
