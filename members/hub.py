"""The Hugging Face hub: what a repository says of itself. Knows no rows.

https://huggingface.co/docs/hub/api#get-apimodelsrepoid (the card's metadata, files with their
sizes, counts of parameters) and `config.json`, `chat_template.jinja`, `tokenizer_config.json`.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx

from nan.unreadable import read_json

INFO_BYTES, CONFIG_BYTES, TEMPLATE_BYTES = 4 * 2**20, 256 * 1024, 4 * 2**20
SECONDS = 20.0
"""For everything that is asked of one repository together: a task has thirty."""
REDIRECTS = 3
NOT_ACCEPTED = "Invalid credentials in Authorization header"


class HubProblem(Exception):
    """`code`: hub_unreachable (worth another try), repo_missing, repo_gated, token_refused,
    hub_odd."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code

    @property
    def permanent(self) -> bool:
        return self.code != "hub_unreachable"


@dataclass(frozen=True, kw_only=True)
class Repository:
    revision: str
    info: dict[str, Any]
    config: dict[str, Any]
    template: str
    """The chat template, from wherever it stands; empty if there is none."""
    closed: bool = False
    """Its files are for those who have agreed to its terms; the hub tells only what its page says,
    so there is no `config` and no `template`."""


class Hub:
    """`token`: of an account that has agreed to the terms of gated repositories. It goes to this
    endpoint only, since redirects to others are not followed."""

    def __init__(self, endpoint: str, *, token: str = "", seconds: float = SECONDS) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._deadline = time.monotonic() + seconds
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(timeout=min(5.0, seconds), headers=headers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def repository(self, repo: str) -> Repository:
        """Raises HubProblem."""
        info = self._record(f"/api/models/{quote(repo)}?blobs=true", INFO_BYTES)
        revision = str(info.get("sha") or "")
        if len(revision) != 40:
            raise HubProblem("hub_odd")
        names = {str(file.get("rfilename")) for file in _records(info.get("siblings"))}
        try:
            config = self._config(repo, revision) if "config.json" in names else {}
        except HubProblem as problem:
            if problem.code != "repo_gated":
                raise
            return Repository(revision=revision, info=info, config={}, template="", closed=True)
        template = self._template(repo, revision, names)
        return Repository(revision=revision, info=info, config=config, template=template)

    def _config(self, repo: str, revision: str) -> dict[str, Any]:
        return self._record(f"/{quote(repo)}/resolve/{revision}/config.json", CONFIG_BYTES)

    def _template(self, repo: str, revision: str, names: set[str]) -> str:
        """Only a help to guess capabilities: not having it is no failure."""
        try:
            if "chat_template.jinja" in names:
                path = f"/{quote(repo)}/resolve/{revision}/chat_template.jinja"
                return self._get(path, TEMPLATE_BYTES).decode("utf-8", "replace")
            if "tokenizer_config.json" in names:
                path = f"/{quote(repo)}/resolve/{revision}/tokenizer_config.json"
                return str(self._record(path, TEMPLATE_BYTES).get("chat_template") or "")
        except HubProblem:
            pass
        return ""

    def _record(self, path: str, most: int) -> dict[str, Any]:
        try:
            found = read_json(self._get(path, most), odd_numbers="null")
        except ValueError:
            raise HubProblem("hub_odd") from None
        if not isinstance(found, dict):
            raise HubProblem("hub_odd")
        return found

    def _get(self, path: str, most: int) -> bytes:
        """Follows redirects on the same host only, reads at most `most` bytes, by the deadline."""
        url = self._endpoint + path
        for _ in range(REDIRECTS + 1):
            try:
                status, headers, body = self._read(url, most)
            except httpx.HTTPError:
                raise HubProblem("hub_unreachable") from None
            if status not in (301, 302, 303, 307, 308):
                return _checked(status, headers, body)
            url = str(httpx.URL(url).join(headers.get("location", "")))
            if urlsplit(url)[:2] != urlsplit(self._endpoint)[:2]:
                raise HubProblem("hub_odd")
        raise HubProblem("hub_odd")

    def _read(self, url: str, most: int) -> tuple[int, Mapping[str, str], bytes]:
        body = bytearray()
        with self._http.stream("GET", url) as answer:
            for chunk in answer.iter_bytes():
                body += chunk
                if len(body) > most:
                    raise HubProblem("hub_odd")
                if time.monotonic() > self._deadline:
                    raise HubProblem("hub_unreachable")
            return answer.status_code, answer.headers, bytes(body)


def _checked(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """The hub answers 401 for what does not exist as well as for what is not public, and says
    `GatedRepo` beside 401 (no account) or 403 (an account that has not agreed).

    https://github.com/huggingface/huggingface_hub/blob/main/src/huggingface_hub/utils/_http.py
    """
    if status == 200:
        return body
    if status == 401 and headers.get("x-error-message") == NOT_ACCEPTED:
        raise HubProblem("token_refused")
    if headers.get("x-error-code") == "GatedRepo" or status == 403:
        raise HubProblem("repo_gated")
    if status in (401, 404):
        raise HubProblem("repo_missing")
    raise HubProblem("hub_unreachable" if status >= 500 or status == 429 else "hub_odd")


def _records(found: Any) -> list[dict[str, Any]]:
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
