"""Starts parts in order, keeps them running, stops them in reverse.

One asyncio task per part. A part starts as soon as those in its `after` are ready, so independent
ones start side by side. Each process leads a session of its own: a Ctrl-C in the terminal reaches
the supervisor only, and a part that does not end in time is killed with all its children.
"""

import asyncio
import signal
import time
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from .output import LONGEST_LINE, Console, PartLog
from .part import Part, all_needs, in_order
from .postgres import credentials
from .state import MARKER, PART_MARKER, PartRecord, StackRecord, kill_session

FIRST_PAUSE = 0.5  # seconds before the first restart; doubles
LONGEST_PAUSE = 30.0
CALM_SECONDS = 30.0  # having run this long, the next restart begins with the first pause again
START_ATTEMPTS = 3
HOLDS = "hold"  # folder of the state dir; a file in it, named as a part, keeps that part down
HOLD_LOOK = 0.2
EXIT_POLL = 0.05


class StartError(Exception):
    """A part could not be brought up; the text says which, why and what to do."""


class Runner:
    """One part: its process, its log, its row in stack.json."""

    def __init__(self, part: Part, *, stack: "Supervisor"):
        self.part = part
        self.stack = stack
        self.log = PartLog(stack.state_dir / "logs" / f"{part.name}.log")
        self.record = PartRecord(
            name=part.name, port=part.port, url=part.url, log=str(self.log.file)
        )
        self.ready = asyncio.Event()
        self.stopped = asyncio.Event()
        self.private: list[str] = []
        self.process: Process | None = None
        self._readers: list[asyncio.Task[None]] = []

    def note(self, state: str) -> None:
        self.record.state = state
        self.stack.save()

    async def run(self) -> None:
        """Up to the first *ready*, a few attempts; after it, for ever."""
        failures, pause = 0, FIRST_PAUSE
        while True:
            began = time.monotonic()
            problem = await self._once()
            if problem is None:
                return
            if not self.ready.is_set():
                failures += 1
                if self.part.job or failures >= START_ATTEMPTS:
                    raise StartError(self._report(problem))
            if time.monotonic() - began > CALM_SECONDS:
                pause = FIRST_PAUSE
            self.record.restarts += 1
            self.note("restarting")
            if await self._kept_down():
                pause = FIRST_PAUSE
                continue
            self.stack.console.say(self.part.name, f"{problem}; starts again in {pause:g} s")
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    @property
    def held(self) -> bool:
        """`python -m nan.local hold NAME` keeps a part down until `release NAME`."""
        return (self.stack.state_dir / HOLDS / self.part.name).exists()

    async def _kept_down(self) -> bool:
        if not self.held:
            return False
        self.note("held")
        self.stack.console.say(self.part.name, "is kept down until it is released")
        while self.held:
            await asyncio.sleep(HOLD_LOOK)
        return True

    async def watch_for_hold(self) -> None:
        while True:
            await asyncio.sleep(HOLD_LOOK)
            running = self.process is not None and self.process.returncode is None
            if self.held and running and not self.part.job:
                await self.end(again=True)

    async def _once(self) -> str | None:
        """Start, wait until ready, then until it ends. None: a job that succeeded."""
        began = time.monotonic()
        try:
            await self._spawn()
        except OSError as error:
            return f"could not be started: {error}"
        assert self.process is not None
        if self.part.job:
            code = await self._ended()
            if code == 0:
                self._announce(began)
                self.stopped.set()
            return None if code == 0 else f"failed ({_how(code)})"
        try:
            async with asyncio.timeout(self.part.ready_seconds):
                answered = await self._wait_ready()
        except TimeoutError:
            await self.end(again=True)
            return f"did not get ready within {self.part.ready_seconds:g} s"
        if answered:
            self._announce(began)
        code = await self._ended()
        kill_session(self.process.pid, state_dir=self.stack.state_dir)
        return f"ended ({_how(code)})"

    async def _spawn(self) -> None:
        if self.part.prepare:
            await asyncio.to_thread(self.part.prepare)
        self.process = await asyncio.create_subprocess_exec(
            *self.part.argv,
            env={**self.part.env, MARKER: str(self.stack.state_dir), PART_MARKER: self.part.name},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=PIPE if self.part.private_output else STDOUT,
            limit=LONGEST_LINE,
            start_new_session=True,
            cwd=self.part.cwd,
            **credentials(self.part.user),
        )
        self.record.pid = self.process.pid
        with suppress(psutil.Error):
            self.record.create_time = psutil.Process(self.process.pid).create_time()
        self.note("starting")
        self._readers = [
            asyncio.create_task(self._read(stream, private=private))
            for stream, private in (
                (self.process.stdout, self.part.private_output),
                (self.process.stderr, False),
            )
            if stream is not None
        ]

    async def _wait_ready(self) -> bool:
        """False when the process ended before it was ready."""
        assert self.process is not None
        while self.process.returncode is None:
            if self.part.ready is None or await asyncio.to_thread(_asks, self.part.ready):
                return True
            await asyncio.sleep(0.15)
        return False

    def _announce(self, began: float) -> None:
        self.note("ready" if not self.part.job else "done")
        verb = "done" if self.part.job else "ready"
        self.stack.console.say(self.part.name, f"{verb} after {time.monotonic() - began:.1f} s")
        self.ready.set()

    async def _ended(self) -> int:
        assert self.process is not None
        code = await _exit_code(self.process)
        if self._readers:
            # A grandchild may hold the pipe open; the part itself is gone.
            await asyncio.wait(self._readers, timeout=1)
        return code

    async def _read(self, stream: asyncio.StreamReader, *, private: bool) -> None:
        while True:
            try:
                line = await stream.readline()
            except ValueError:
                line = b"(a line too long to show was left out)\n"
            if not line:
                return
            text = line.decode(errors="replace").rstrip()
            if private:
                self.private.append(text)
            else:
                self.log.write(text)
                self.stack.console.line(self.part.name, text)

    async def end(self, *, again: bool = False) -> None:
        """The part's own signal, then its time-out, then SIGKILL to whatever it left."""
        process = self.process
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(self.part.stop_signal)
            try:
                async with asyncio.timeout(self.part.stop_seconds):
                    await _exit_code(process, unless=self.stack.killing)
            except TimeoutError:
                self.stack.console.say(self.part.name, "does not end; killing it")
        if process is not None and not self.stopped.is_set():
            kill_session(process.pid, state_dir=self.stack.state_dir)
            await _exit_code(process)
        if not again:
            self.note("stopped")
            self.stopped.set()

    def _report(self, problem: str) -> str:
        lines = [f"{self.part.name} {problem}."]
        if self.log.tail:
            lines += ["Its last lines:", *(f"    {line}" for line in self.log.tail)]
        lines += [f"Whole log: {self.log.file}"]
        if self.part.remedy:
            lines.append(f"What to do: {self.part.remedy}")
        return "\n".join(lines)


class Supervisor:
    """Runs parts until it is told to stop, or until one can't be started."""

    def __init__(
        self,
        parts: Sequence[Part],
        *,
        state_dir: Path,
        record: StackRecord,
        quiet: bool = False,
        on_ready: Callable[[Mapping[str, list[str]]], str] | None = None,
    ):
        self.parts = in_order(parts)
        self.needs = all_needs(parts)
        self.state_dir = state_dir
        self.record = record
        self.console = Console(names=[part.name for part in self.parts], quiet=quiet)
        self.on_ready = on_ready
        self.killing = asyncio.Event()
        self.stopping = asyncio.Event()
        self.runners: dict[str, Runner] = {}

    def save(self) -> None:
        self.record.parts = {name: runner.record for name, runner in self.runners.items()}
        self.record.save()

    async def run(self) -> int:
        """0 after an orderly stop, 1 when a part could not be started."""
        self._listen()
        self.runners = {part.name: Runner(part, stack=self) for part in self.parts}
        self.save()
        tasks = {name: asyncio.create_task(self._bring_up(r)) for name, r in self.runners.items()}
        all_ready = asyncio.create_task(self._greet())
        stop = asyncio.create_task(self.stopping.wait())
        failure = await self._first_failure(tasks, stop)
        await self._stop_all(tasks, all_ready)
        if failure:
            self.console.plain(f"\n{failure}\n\nEverything that was started has been stopped.")
        return 1 if failure else 0

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._asked_to_stop, number)

    def _asked_to_stop(self, number: int) -> None:
        if self.stopping.is_set() and number == signal.SIGINT:
            self.console.plain("Killing what is left.")
            self.killing.set()
        elif not self.stopping.is_set():
            self.console.plain("\nStopping. Ctrl-C again to kill what does not end.")
        self.stopping.set()

    async def _bring_up(self, runner: Runner) -> None:
        for name in runner.part.after:
            if name in self.runners:
                await self.runners[name].ready.wait()
        watcher = asyncio.create_task(runner.watch_for_hold())
        try:
            await runner.run()
        finally:
            watcher.cancel()

    async def _first_failure(
        self, tasks: Mapping[str, asyncio.Task[None]], stop: asyncio.Task[bool]
    ) -> str | None:
        """Waits for the wish to stop or the first part that gave up."""
        waiting = set(tasks.values())
        while not stop.done():
            done, _ = await asyncio.wait({stop, *waiting}, return_when=asyncio.FIRST_COMPLETED)
            for task in done & waiting:
                waiting.discard(task)
                error = task.exception()
                if error is not None:
                    stop.cancel()
                    return str(error) or repr(error)
        return None

    async def _greet(self) -> None:
        for runner in self.runners.values():
            await runner.ready.wait()
        self.record.ready = True
        self.save()
        if self.on_ready:
            private = {name: runner.private for name, runner in self.runners.items()}
            self.console.plain(self.on_ready(private))

    async def _stop_all(
        self, tasks: Mapping[str, asyncio.Task[None]], greeting: asyncio.Task[None]
    ) -> None:
        """Each part once all that need it have stopped. Restarts are called off first."""
        self.record.ready = False
        for task in (*tasks.values(), greeting):
            task.cancel()
        await asyncio.gather(*tasks.values(), greeting, return_exceptions=True)
        await asyncio.gather(*(self._stop(runner) for runner in self.runners.values()))
        for runner in self.runners.values():
            runner.log.close()

    async def _stop(self, runner: Runner) -> None:
        for other in self.runners.values():
            if runner.part.name in self.needs[other.part.name]:
                await other.stopped.wait()
        began = time.monotonic()
        running = runner.process is not None and runner.process.returncode is None
        await runner.end()
        if running:
            seconds = time.monotonic() - began
            self.console.say(runner.part.name, f"stopped after {seconds:.1f} s")


async def _exit_code(process: Process, *, unless: asyncio.Event | None = None) -> int:
    """Asks again and again, because asyncio's own `wait` also waits for the pipe to close, which a
    child of the part may hold open for ever. -1 when `unless` happened first."""
    while process.returncode is None:
        if unless is not None and unless.is_set():
            return -1
        await asyncio.sleep(EXIT_POLL)
    return process.returncode


def _asks(ready: Callable[[], bool]) -> bool:
    try:
        return ready()
    except Exception:  # noqa: BLE001  # whatever a client library raises: not yet
        return False


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
