"""Each probe can fail. An edge that is scripted here answers wrongly, as the real one must never.

It keeps count of places, as the gateway does for a key: two calls at once, else 429.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from inference import smoke
from inference.engine import Engine
from inference.probes import calls, runs
from tests.fakes.engine import chat_answer, chat_chunks
from tests.fakes.raw_http import Connection, RawServer, Request

TARGET = smoke.Target(name="nan", capabilities=frozenset({"chat", "tools"}), context=8192)
PLACES = 2
Change = Callable[["Edge"], None]


class Edge:
    """What it answers; a test changes one thing."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = [chat_answer()]
        """Of chat, one after the other; the last one stays."""
        self.count: Any = {"input_tokens": 7}
        self.refuses = False
        """Every call, as where the minute's calls are used up."""
        self.frees_after = 0.0
        """Seconds from when a stream was left until its place is free."""
        self.keeps = 0
        """So many of the streams that are left keep their place for ever."""
        self.places = PLACES
        self.lock = threading.Lock()

    def serve(self, request: Request, connection: Connection) -> None:
        if request.target == "/v1/messages/count_tokens":
            connection.answer(200, json.dumps(self.count).encode())
            return
        with self.lock:
            free = not self.refuses and self.places > 0
            self.places -= free
        if not free:
            connection.answer(429, {"error": {"message": "Too many.", "code": "429"}})
        elif json.loads(request.body).get("stream"):
            self._stream(connection)
        else:
            connection.answer(200, self.answers.pop(0) if self.answers[1:] else self.answers[0])
            self._free()

    def _stream(self, connection: Connection) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
        connection.send(b"transfer-encoding: chunked\r\n\r\n")
        for chunk in chat_chunks()[:2]:
            connection.chunk(f"data: {json.dumps(chunk)}\n\n".encode())
        connection.seconds_until_gone(5)
        self.keeps -= 1
        if self.keeps < 0:
            time.sleep(self.frees_after)
            self._free()

    def _free(self) -> None:
        with self.lock:
            self.places += 1


@contextmanager
def edge_with(change: Change) -> Iterator[Engine]:
    edge = Edge()
    change(edge)
    with RawServer(edge.serve) as server, Engine(f"http://{server.address}", "any") as client:
        yield client


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "LIMITS", smoke.Limits(first=1, whole=3))
    monkeypatch.setattr(calls, "SLOT_SECONDS", 1.2)


def put(name: str, value: Any) -> Change:
    return lambda edge: setattr(edge, name, value)


def probed(name: str, change: Change) -> tuple[str, str]:
    """Code and detail."""
    with edge_with(change) as client:
        outcome = runs._probe(name, client, TARGET)
    assert outcome.ok == (outcome.code == "")
    return outcome.code, outcome.detail


def chosen(*called: tuple[str, str], content: str | None = None) -> dict[str, Any]:
    tool_calls = [{"function": {"name": name, "arguments": text}} for name, text in called]
    return chat_answer(content=content, tool_calls=tool_calls)


LISBON, PORTO = ("weather", '{"city": "Lisbon"}'), ("weather", '{"city": "Porto"}')
SUNNY = chat_answer(content="Both are sunny.")


@pytest.mark.parametrize(
    ("changed", "code", "detail"),
    [
        (("keeps", 0), "", ""),
        (("frees_after", 0.4), "", ""),
        (("keeps", 2), "probe_slot_taken", "after 1.2 s"),
        (("keeps", 1), "probe_slot_taken", "after 1.2 s"),
    ],
)
def test_a_place_that_stays_taken_after_a_stream_was_left(
    changed: tuple[str, Any], code: str, detail: str
) -> None:
    assert probed("cancel", put(*changed)) == (code, detail)


@pytest.mark.parametrize("name", ["chat", "stream", "cancel", "tools_parallel"])
def test_what_the_probes_own_limits_refuse_says_nothing_of_the_call(name: str) -> None:
    assert probed(name, put("refuses", True)) == ("probe_limited", "")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"input_tokens": 7}, ""),
        ({"input_tokens": 0}, "probe_count"),
        ({"input_tokens": -1}, "probe_count"),
        ({"input_tokens": "7"}, "probe_count"),
        ({"input_tokens": True}, "probe_count"),
        ({}, "probe_count"),
        ([], "smoke_unreadable"),
    ],
)
def test_a_count_that_is_no_number(answer: Any, code: str) -> None:
    assert probed("count_tokens", put("count", answer)) == (code, "")


@pytest.mark.parametrize(
    ("first", "second", "code", "detail"),
    [
        (chosen(LISBON, PORTO), SUNNY, "", ""),
        (chosen(LISBON), SUNNY, "", ""),
        (chosen(LISBON, PORTO), chosen(LISBON), "", ""),
        (chosen(LISBON, ("weather", '{"city"')), SUNNY, "smoke_tool_arguments", "not JSON"),
        (
            chosen(LISBON, ("weather", '"the city"')),
            SUNNY,
            "smoke_tool_arguments",
            "a required argument is missing",
        ),
        (
            chosen(LISBON, ("weather", "{}")),
            SUNNY,
            "smoke_tool_arguments",
            "a required argument is missing",
        ),
        (
            chosen((LISBON[0], LISBON[1] + PORTO[1])),
            SUNNY,
            "smoke_tool_arguments",
            "not JSON",
        ),
        (
            chosen(LISBON, ("weatherweather", "{}")),
            SUNNY,
            "smoke_tool_call_lost",
            "a call of another name",
        ),
        (
            chosen(LISBON, content="<tool_call>{}</tool_call>"),
            SUNNY,
            "smoke_tool_call_lost",
            "left in the content",
        ),
        (
            chat_answer(content="Sunny in both, I suppose."),
            SUNNY,
            "smoke_tool_call_lost",
            "none made",
        ),
        (
            chosen(LISBON, PORTO),
            chat_answer(content=None),
            "smoke_empty",
            "content is null",
        ),
        (
            chosen(LISBON, PORTO),
            chat_answer(content="", reasoning="So both are sunny."),
            "smoke_empty",
            "content is empty",
        ),
    ],
)
def test_several_tool_calls_that_come_broken(
    first: dict[str, Any], second: dict[str, Any], code: str, detail: str
) -> None:
    assert probed("tools_parallel", put("answers", [first, second])) == (code, detail)
