"""The scheduler: admission, places, pace and counts. No model behind it."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack
from dataclasses import replace

from inference.simulator.asks import Ask, check_length
from inference.simulator.faults import ProcessFault
from inference.simulator.flags import Options
from inference.simulator.http import ApiError, CutError
from inference.simulator.metrics import Metrics
from inference.simulator.prefix_cache import BLOCK, PrefixCache
from inference.simulator.script import Piece, write
from inference.simulator.settings import Settings


class Engine:
    """One request is one entry in `running` or `waiting`, whatever its `n`."""

    def __init__(self, options: Options, settings: Settings) -> None:
        self.options, self.settings = options, settings
        self.max_model_len = options.max_model_len or settings.model_max_len
        self.prompts_seen = 0
        self.stopping = False
        self.frozen = False
        """After a half-dead SIGTERM: nothing more is generated."""
        self.dead = False
        """The core has died: everything fails, until the process ends."""
        self.running: set[Generation] = set()
        self.waiting: set[Generation] = set()
        self.pooling = 0
        """Embedding requests at work; they need no place."""
        self.places = asyncio.Semaphore(options.max_num_seqs)
        self.prefilling = asyncio.Lock()
        self.cache = PrefixCache(capacity_tokens=settings.kv_cache_tokens)
        self.metrics = Metrics(
            model_name=options.served_names[0],
            kv_cache_tokens=settings.kv_cache_tokens,
            block_size=BLOCK,
            drafts=options.drafts,
        )
        self.metrics.watch(
            running=lambda: len(self.running) + self.pooling,
            waiting=lambda: len(self.waiting),
            kv_used=self._kv_used,
        )

    def misbehave(self, faults: Iterable[str]) -> None:
        """From now on in these ways, and in no other."""
        self.settings = replace(self.settings, faults=ProcessFault.known(faults))

    def start(self, ask: Ask, cleanup: ExitStack) -> "Generation":
        """Admit or refuse; `cleanup` takes the request out again, however it ends."""
        self.refuse_if_stopping()
        pieces = ask.prompt_pieces()
        limit = check_length(
            prompt_tokens=len(pieces), max_tokens=ask.max_tokens, max_model_len=self.max_model_len
        )
        self._refuse_beyond_queue()
        self.prompts_seen += 1
        cached = self.cache.take(pieces) if self.options.prefix_caching else 0
        generation = Generation(
            self, ask, prompt_tokens=len(pieces), cached_tokens=cached, limit=limit
        )
        self.waiting.add(generation)
        cleanup.callback(generation.leave)
        return generation

    def start_pooling(self, cleanup: ExitStack, *, prompt_tokens: int) -> None:
        """Admit an embedding request until `cleanup` is closed."""
        self.refuse_if_stopping()
        self.prompts_seen += 1
        self.pooling += 1
        self.metrics.prompt_tokens.inc(prompt_tokens)
        cleanup.callback(self._end_pooling)

    def _end_pooling(self) -> None:
        self.pooling -= 1

    def refuse_if_stopping(self) -> None:
        if self.stopping or self.dead:
            message = "EngineCore encountered an issue. See stack trace for the root cause."
            raise ApiError(500, message)

    def _refuse_beyond_queue(self) -> None:
        limit = self.options.max_queued
        if limit is not None and self.places.locked() and len(self.waiting) >= limit:
            self.metrics.rejected("max_num_queued_reqs")
            raise ApiError(503, "The engine's queue is full. Please retry later.")

    def _kv_used(self) -> float:
        held = sum(g.prompt_tokens + g.completion_tokens for g in self.running)
        return min(1.0, held / self.settings.kv_cache_tokens)


class Generation:
    """One request's way through the engine. Counts are final once `pieces` has ended."""

    def __init__(self, engine: Engine, ask: Ask, *, prompt_tokens: int, cached_tokens: int,
                 limit: int) -> None:  # fmt: skip
        self.id = uuid.uuid4().hex
        self.created = int(time.time())
        self.ask = ask
        self.prompt_tokens, self.cached_tokens = prompt_tokens, cached_tokens
        self.completion_tokens = 0
        """Of all choices together."""
        self.reasoning_tokens = 0
        self.finish_reason: str | None = None
        self.stop_reason: str | None = None
        self._engine, self._limit = engine, limit
        self._script = write(ask, engine.settings.faults)
        self._arrived = time.monotonic()
        self._last_token: float | None = None
        self._holds_place = False

    async def pieces(self) -> AsyncIterator[Piece]:
        await self._take_place()
        await self._first_token()
        pieces = self._script.pieces[: self._limit]
        cut_at = max(1, len(pieces) // 2) if self.ask.directives.die_midstream else None
        begun = time.monotonic()
        for number, piece in enumerate(pieces):
            if number == cut_at:
                break
            await self._wait_until(begun + number / self._engine.settings.tokens_per_second)
            self._count(piece)
            yield piece
        if cut_at is not None:
            self.finish_reason = "error"
            raise CutError
        self._finish(cut=len(pieces) < len(self._script.pieces))

    async def _take_place(self) -> None:
        await self._engine.places.acquire()
        self._holds_place = True
        self._engine.waiting.discard(self)
        self._engine.running.add(self)
        self._engine.metrics.queue_time.observe(time.monotonic() - self._arrived)

    async def _first_token(self) -> None:
        faults = self._engine.settings.faults
        silent = self.ask.stream and ProcessFault.STREAM_ONLY_HANG in faults
        if self.ask.directives.hang or ProcessFault.HANG in faults or silent:
            await _forever()
        await self._prefill()
        await asyncio.sleep(self._engine.settings.ttft_seconds + self.ask.directives.sleep)
        metrics = self._engine.metrics
        metrics.ttft.observe(time.monotonic() - self._arrived)
        metrics.prompt_tokens.inc(self.prompt_tokens)
        metrics.cached_tokens.inc(self.cached_tokens)
        metrics.prefix_queries.inc(self.prompt_tokens)
        metrics.prefix_hits.inc(self.cached_tokens)

    async def _prefill(self) -> None:
        """One prompt at a time: in a real engine prompts share the GPU, with the same sum."""
        if speed := self._engine.settings.prefill_tokens_per_second:
            async with self._engine.prefilling:
                await asyncio.sleep((self.prompt_tokens - self.cached_tokens) / speed)

    async def _wait_until(self, moment: float) -> None:
        """By the clock, not by adding sleeps, so that a busy machine doesn't slow the pace."""
        if self._engine.frozen:
            await _forever()
        await asyncio.sleep(max(0.0, moment - time.monotonic()))
        if self._engine.dead:
            self._engine.refuse_if_stopping()

    def _count(self, piece: Piece) -> None:
        now, before = time.monotonic(), self._last_token
        self._last_token = now
        self.completion_tokens += self.ask.n
        self.reasoning_tokens += self.ask.n if piece.kind == "reasoning" else 0
        self._engine.metrics.generation_tokens.inc(self.ask.n)
        if before is not None:
            self._engine.metrics.itl.observe(now - before)
        if self.completion_tokens % 2 == 0:
            self._engine.metrics.guessed()

    def _finish(self, *, cut: bool) -> None:
        if cut:
            self.finish_reason = "length"
            return
        self.stop_reason = self._script.stop_reason
        self.finish_reason = "tool_calls" if self._script.calls_tool else "stop"

    def leave(self) -> None:
        """Called once, at the end of the HTTP request; vLLM doesn't count a client that left."""
        self._engine.waiting.discard(self)
        self._engine.running.discard(self)
        if self._holds_place:
            self._holds_place = False
            self._engine.places.release()
        metrics = self._engine.metrics
        if self.finish_reason:
            metrics.finished({"tool_calls": "stop"}.get(self.finish_reason, self.finish_reason))
            metrics.e2e.observe(time.monotonic() - self._arrived)
            metrics.request_prompt.observe(self.prompt_tokens)
            metrics.request_generation.observe(self.completion_tokens)


async def _forever() -> None:
    await asyncio.Event().wait()
