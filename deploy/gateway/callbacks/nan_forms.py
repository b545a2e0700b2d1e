"""Forms with a file (speech to text), taken apart and put together again with known fields only."""

from __future__ import annotations

import re
import secrets
from collections.abc import MutableMapping
from typing import Any

from nan_refusals import Refused, check
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

MAX_FIELDS = 64


async def rewritten(
    scope: MutableMapping[str, Any], body: bytes, allowed: frozenset[str]
) -> tuple[bytes, bytes]:
    """(content type, body). A file's name and type may hold only what needs no quoting."""
    parts, texts = [], {}
    for name, value in await _fields(scope, body):
        if isinstance(value, UploadFile):
            data = await value.read()
            await value.close()
            if name in allowed:
                parts.append((_disposition(name, value), data))
        elif name in allowed:
            texts[name] = value
            parts.append((_disposition(name, None), value.encode(errors="replace")))
    check(scope["path"], {"model": texts.get("model")})
    boundary = secrets.token_hex(16).encode()
    whole = b"".join(b"--%s\r\n%s\r\n\r\n%s\r\n" % (boundary, head, data) for head, data in parts)
    return b"multipart/form-data; boundary=" + boundary, whole + b"--%s--\r\n" % boundary


async def _fields(
    scope: MutableMapping[str, Any], body: bytes
) -> list[tuple[str, UploadFile | str]]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    kind = dict(scope["headers"]).get(b"content-type", b"").split(b";")[0].strip().lower()
    if kind != b"multipart/form-data":
        raise Refused("Send the file as multipart/form-data.")
    try:
        form = await Request(scope, receive).form(max_files=1, max_fields=MAX_FIELDS)
    except (MultiPartException, HTTPException, KeyError, ValueError):
        # Inside an application, Starlette turns its own error into an HTTP one.
        raise Refused("The form could not be read.") from None
    return form.multi_items()


def _disposition(name: str, file: UploadFile | None) -> bytes:
    head = f'Content-Disposition: form-data; name="{name}"'
    if file is not None:
        # The ending tells the engine the format; the name itself may be anybody's.
        ending = re.search(r"\.[A-Za-z0-9]{1,8}$", file.filename or "")
        kind = re.fullmatch(r"[a-z]+/[A-Za-z0-9.+-]+", file.content_type or "")
        head += f'; filename="audio{ending[0] if ending else ""}"'
        head += f"\r\nContent-Type: {kind[0] if kind else 'application/octet-stream'}"
    return head.encode()
