"""The API as any caller meets it: through the edge, with a key that nobody has.

What comes back says what callers get now. That the key is refused proves the edge, the gateway and
the database in which it looks keys up; nothing runs and nothing is counted. The key is a new one
each time: the gateway remembers for a minute what it has looked up.
"""

import secrets
from typing import Any, Literal

import httpx

Met = Literal["up", "keys", "gateway", "edge"]
"""*keys*: those that the gateway does not remember can't be checked. *gateway*: the edge answers in
its place, or nobody in time. *edge*: nobody at that address."""

TIMES = httpx.Timeout(4.0, connect=2.0)
NOT_CHECKED = "key_check_unavailable"


def look(api_url: str) -> Met:
    """Never raises; takes the sum of its timeouts at most."""
    headers = {"Authorization": f"Bearer sk-{secrets.token_hex(16)}"}
    try:
        answer = httpx.get(f"{api_url}/v1/models", headers=headers, timeout=TIMES)
    except (httpx.ConnectError, httpx.ConnectTimeout):
        return "edge"
    except httpx.HTTPError:
        return "gateway"
    if answer.status_code < 500:
        return "up"
    return "keys" if _code(answer) == NOT_CHECKED else "gateway"


def _code(answer: httpx.Response) -> Any:
    try:
        return answer.json()["error"]["code"]
    except (ValueError, KeyError, TypeError):
        return None
