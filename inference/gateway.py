"""The only client of LiteLLM's admin API. Knows nothing of our rows.

Every behaviour relied on here is held by tests/inference/test_gateway_contract.py, which runs
against the fake and against the real gateway.
"""

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Self
from urllib.parse import quote

import httpx

from inference.deployment import Deployment
from inference.limits import Limits

# Exactly what the edge serves: with this list on a key, every other route answers it 403, among
# them /key/generate (a way to a key without limits) and /model/info (engine addresses).
ALLOWED_ROUTES = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/audio/transcriptions",
    "/v1/audio/speech",
    "/v1/models",
]
# The gateway closes idle connections after 5 s; ours go earlier, so that a call rarely starts on
# a connection that is being closed.
LIMITS = httpx.Limits(max_connections=32, max_keepalive_connections=16, keepalive_expiry=2)
TIMEOUT = httpx.Timeout(8, connect=2)
PAGE = 100


class GatewayUnavailable(Exception):
    """Passing: try again later. `maybe_done`: the call may have taken effect all the same."""

    def __init__(self, code: str, *, maybe_done: bool) -> None:
        super().__init__(code)
        self.code = code
        self.maybe_done = maybe_done


class GatewayRefused(Exception):
    """Final: the gateway understood the call and said no. Carries a code, never its words."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class NewKey:
    """A key value made by us, so that its id at the gateway is known before the first call."""

    value: str

    @classmethod
    def make(cls) -> Self:
        return cls("sk-" + secrets.token_urlsafe(32))

    @property
    def token(self) -> str:
        return hashlib.sha256(self.value.encode()).hexdigest()

    @property
    def hint(self) -> str:
        return self.value[-4:]

    def __repr__(self) -> str:
        return f"NewKey(…{self.hint})"


@dataclass(frozen=True)
class GatewayKey:
    token: str
    alias: str
    site: str
    blocked: bool
    limits: Limits
    created_at: datetime

    @classmethod
    def read(cls, row: dict[str, Any]) -> Self:
        return cls(
            token=row["token"],
            alias=row.get("key_alias") or "",
            site=str((row.get("metadata") or {}).get("site", "")),
            blocked=bool(row.get("blocked")),
            limits=Limits(row.get("rpm_limit") or 0, row.get("max_parallel_requests") or 0),
            created_at=datetime.fromisoformat(row["created_at"]),
        )


class Gateway:
    """`site` marks the keys of this installation, so that two can share a gateway safely."""

    def __init__(
        self,
        base_url: str,
        master_key: str,
        *,
        site: str,
        timeout: httpx.Timeout = TIMEOUT,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._site = site
        self._http = httpx.Client(
            base_url=base_url,
            headers={"Authorization": f"Bearer {master_key}"},
            timeout=timeout,
            limits=LIMITS,
            transport=transport,
        )

    def close(self) -> None:
        self._http.close()

    def create(self, *, new: NewKey, alias: str, owner: str, limits: Limits) -> None:
        """Once, never repeated here: the answer of a repeated create can't be trusted.

        No token limit, budget or duration, and no LiteLLM user row for `owner` (a key whose user
        has one may mint further keys).
        https://docs.litellm.ai/docs/proxy/virtual_keys
        """
        answer = self._call(
            "POST",
            "/key/generate",
            json={
                "key": new.value,
                "key_alias": alias,
                "user_id": owner,
                "rpm_limit": limits.rpm,
                "max_parallel_requests": limits.parallel,
                "allowed_routes": ALLOWED_ROUTES,
                "metadata": {"site": self._site},
            },
        )
        if answer.get("token") != new.token or answer.get("key_alias") != alias:
            raise GatewayUnavailable("unreadable", maybe_done=True)

    def accepts(self, new: NewKey) -> bool:
        """Whether the key itself may call the gateway: the cheapest call that reads it.

        https://docs.litellm.ai/docs/proxy/model_access
        """
        try:
            self._call(
                "GET", "/v1/models", headers={"Authorization": f"Bearer {new.value}"}, repeat=True
            )
        except GatewayUnavailable as error:
            if error.code != "not_admitted":
                raise
            return False
        return True

    def block(self, token: str) -> None:
        """https://litellm-api.up.railway.app/#/key%20management/block_key_key_block_post"""
        self._call("POST", "/key/block", json={"key": token}, repeat=True)

    def unblock(self, token: str) -> None:
        """https://litellm-api.up.railway.app/#/key%20management/unblock_key_key_unblock_post"""
        self._call("POST", "/key/unblock", json={"key": token}, repeat=True)

    def limit(self, token: str, limits: Limits) -> None:
        """https://docs.litellm.ai/docs/proxy/users#set-rate-limits"""
        self._call(
            "POST",
            "/key/update",
            json={
                "key": token,
                "rpm_limit": limits.rpm,
                "max_parallel_requests": limits.parallel,
            },
            repeat=True,
        )

    def delete(self, token: str) -> None:
        """A key that is not there is as good as deleted. Block first: see `gateway.block`.

        A deletion alone takes a minute to reach a second gateway instance.
        https://docs.litellm.ai/docs/proxy/virtual_keys
        """
        try:
            self._call("POST", "/key/delete", json={"keys": [token]}, repeat=True)
        except GatewayRefused as error:
            if error.code != "not_found":
                raise

    def with_alias(self, alias: str) -> list[GatewayKey]:
        """Normally one; more only after creates that raced (the gateway checks, then inserts).

        https://docs.litellm.ai/docs/proxy/virtual_keys#key-list
        """
        return self._page(1, key_alias=alias)[0]

    def all_keys(self) -> Iterator[GatewayKey]:
        """Every key at the gateway, oldest first, so that new ones don't shift the pages."""
        number, pages = 1, 1
        while number <= pages:
            keys, pages = self._page(number, sort_by="created_at", sort_order="asc")
            yield from keys
            number += 1

    def tokens_used_on(self, day: date) -> set[str]:
        """Ids of the keys with at least one call on that day (UTC)."""
        used: set[str] = set()
        number, pages = 1, 1
        while number <= pages:
            found, pages = self.activity(day, number)
            used.update(found.get("api_keys", {}))
            number += 1
        return used

    def activity(self, day: date, page: int, token: str = "") -> tuple[dict[str, Any], int]:
        """One page of what all keys, or one, did on a day (UTC); how many pages there are now.

        A page is a thousand of the gateway's rows (a key, a model and a route), in an order in
        which new rows come in anywhere: see `inference.usage.reading`.
        https://docs.litellm.ai/docs/proxy/cost_tracking#daily-spend-breakdown-api
        """
        span = {"start_date": day.isoformat(), "end_date": day.isoformat()}
        of = {"api_key": token} if token else {}
        answer = self._call(
            "GET",
            "/user/daily/activity",
            params={**span, **of, "page": page, "page_size": 1000},
            repeat=True,
        )
        try:
            found = [r["breakdown"] for r in answer["results"] if r["date"] == day.isoformat()]
            return (found[0] if found else {}), answer["metadata"]["total_pages"] or 1
        except (KeyError, TypeError):
            raise GatewayUnavailable("unreadable", maybe_done=False) from None

    def deployments(self) -> list[Deployment]:
        """The whole model list, also what others put there. Engine keys are not told.

        https://docs.litellm.ai/docs/proxy/model_management
        """
        answer = self._call("GET", "/model/info", repeat=True)
        try:
            return [Deployment.read(row) for row in answer["data"]]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise GatewayUnavailable("unreadable", maybe_done=False) from None

    def put_deployment(self, wanted: Deployment) -> None:
        """Makes the entry of this id say exactly this; may be repeated, and cuts no request.

        By PATCH with the whole of it: `POST /model/update` leaves `model_info` as it was, and a
        patch without the id gives the entry another one. A second `/model/new` of one id fails.
        """
        path = f"/model/{quote(wanted.id, safe=':')}/update"
        try:
            self._call("PATCH", path, json=wanted.body(), repeat=True)
        except GatewayRefused as error:
            if error.code != "not_found":
                raise
            self._call("POST", "/model/new", json=wanted.body())

    def remove_deployment(self, id: str) -> None:
        """An entry that is not there is as good as removed (the gateway answers that with 400)."""
        try:
            self._call("POST", "/model/delete", json={"id": id}, repeat=True)
        except GatewayRefused:
            if any(found.id == id for found in self.deployments()):
                raise

    def _page(self, number: int, **query: str) -> tuple[list[GatewayKey], int]:
        answer = self._call(
            "GET",
            "/key/list",
            params={"page": number, "size": PAGE, "return_full_object": "true", **query},
            repeat=True,
        )
        try:
            keys = [GatewayKey.read(row) for row in answer["keys"]]
        except (KeyError, TypeError, ValueError):
            raise GatewayUnavailable("unreadable", maybe_done=False) from None
        return keys, answer.get("total_pages") or 1

    def _call(self, method: str, path: str, *, repeat: bool = False, **request: Any) -> Any:
        """`repeat` once when the connection broke: only for calls that may happen twice."""
        try:
            response = self._http.request(method, path, **request)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            raise GatewayUnavailable("unreachable", maybe_done=False) from None
        except httpx.TimeoutException:
            raise GatewayUnavailable("timeout", maybe_done=True) from None
        except httpx.TransportError:
            if repeat:
                return self._call(method, path, **request)
            raise GatewayUnavailable("broken_off", maybe_done=True) from None
        return _read(response)


def _read(response: httpx.Response) -> Any:
    """The JSON of a success; else the error that says whether to try again.

    401 and 403 are passing: a wrong master key is the operator's to mend, and LiteLLM also answers
    401 while its database has no connection left.
    """
    status = response.status_code
    if status in (401, 403):
        raise GatewayUnavailable("not_admitted", maybe_done=False)
    if status == 429 or status >= 500:
        raise GatewayUnavailable("server_error", maybe_done=True)
    if status == 404:
        raise GatewayRefused("not_found")
    if status >= 400:
        raise GatewayRefused("alias_taken" if "already exists" in response.text else "refused")
    try:
        return response.json()
    except ValueError:
        raise GatewayUnavailable("unreadable", maybe_done=True) from None
