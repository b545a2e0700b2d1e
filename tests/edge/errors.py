"""The two dialects of an error, and a gateway that gives one answer."""

from __future__ import annotations

from typing import Any

from tests.edge.conftest import Scene
from tests.fakes.raw_http import Answer, Connection, Request, Script, post

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
HASH = "0123456789abcdef" * 4
JSON = {"content-type": "application/json"}


def litellm(message: str, kind: str = "auth_error", code: int = 401) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": "None", "code": str(code)}}


def answering(status: int, body: bytes | dict[str, Any], **headers: str) -> Script:
    named = JSON | {name.replace("__", "-"): value for name, value in headers.items()}

    def script(request: Request, connection: Connection) -> None:
        connection.answer(status, body, named)

    return script


def openai(message: str, kind: str, code: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic(message: str, kind: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def ask_both(scene: Scene, script: Script) -> tuple[Answer, Answer]:
    scene.scripts["gateway"] = script
    return post(scene.edge.api, CHAT), post(scene.edge.api, MESSAGES)


def own_headers(answer: Answer) -> dict[str, str]:
    ignored = ("content-length", "cache-control", "content-type")
    assert answer.headers["content-type"] == "application/json"
    return {name: value for name, value in answer.headers.items() if name not in ignored}


BAD_GATEWAY = "The gateway failed before it answered. Your request may have run; try again."
TIMEOUT = "The gateway did not answer in time. Try again, or with a shorter request."
