"""The one webhook that hears of alerts: a POST of a small JSON object.

Its address is a secret (whoever has it can write into the admins' channel), so it stands in no log
line and in no exception.
"""

from collections.abc import Mapping
from typing import Self

import httpx

TIMEOUT = httpx.Timeout(5.0, connect=3.0)
LATER = frozenset({408, 425, 429})


class NotDelivered(Exception):
    """The other side does not have it. `again`: a later attempt may succeed."""

    def __init__(self, code: str, *, again: bool) -> None:
        super().__init__(code)
        self.code, self.again = code, again


class Unsure(Exception):
    """It was sent, and no answer came: nobody knows."""


class Webhook:
    def __init__(self, url: str, *, timeout: httpx.Timeout = TIMEOUT) -> None:
        self._url = url
        self._http = httpx.Client(timeout=timeout, follow_redirects=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def post(self, message: Mapping[str, str]) -> None:
        """Raises NotDelivered or Unsure, neither with a cause: those name the address."""
        try:
            response = self._http.post(self._url, json=dict(message))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            raise NotDelivered("unreachable", again=True) from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, ValueError):
            raise NotDelivered("bad_address", again=False) from None
        except httpx.HTTPError:
            raise Unsure from None
        if not response.is_success:
            again = response.status_code >= 500 or response.status_code in LATER
            raise NotDelivered(f"status_{response.status_code}", again=again)
