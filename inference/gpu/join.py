"""A new GPU host: a one-time token becomes the host's settings. The client's half.

    POST {site}/staff/servers/join            Content-Type: application/json, no cookies
    {"version": 1, "token": "…", "address": "10.8.0.7", "hostname": "gpu7",
     "gpus": [{"index": 0, "name": "NVIDIA …", "total_mib": 98304}], "disk_free_mib": 900000}

    200 {"settings": {"NAN_GPU_NAME": "gpu7", "REDIS_URL": "rediss://…", "ENGINE_API_KEY": "…", …}}
    4xx {"error": "token_unknown|token_used|token_expired|address_refused|…", "text": "sentence"}

`settings` must name NAN_GPU_NAME, REDIS_URL and ENGINE_API_KEY and may name the others of SETTINGS.
The token opens the broker: it travels over HTTPS only (plain HTTP to this machine itself), no
redirect is followed, and it is used up before the file is written, so the file is made sure of
first. Pass it on standard input or in NAN_JOIN_TOKEN rather than on the command line.
"""

import re
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from inference.gpu.devices import Gpu
from inference.gpu.host import Host, HostError
from inference.gpu.state import write_atomically

VERSION = 1
TIMEOUT = httpx.Timeout(20, connect=5)
REQUIRED = ("NAN_GPU_NAME", "REDIS_URL", "ENGINE_API_KEY")
SETTINGS = frozenset((
    *REQUIRED, "NAN_GPU_ADDRESS", "NAN_GPU_STATE", "NAN_GPU_DRIVER", "NAN_GPU_DEVICES",
    "NAN_ENGINE_KIND", "NAN_ENGINE_HOME", "NAN_ENGINE_IMAGE", "HF_HOME", "SITE_URL",
))  # fmt: skip
_SAFE = re.compile(r"[\x21-\x7e]{1,500}", re.ASCII)


class JoinRefused(Exception):
    """Not joined; the message says what was kept and what to do next."""


def check_site(url: str) -> str:
    """The site's address, if a token may be sent there."""
    parts = urlsplit(url)
    local = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if not parts.hostname or parts.scheme not in ("https", "http") or parts.username:
        raise JoinRefused(f"{url!r} is no web address. Use the one that the join page shows.")
    if parts.scheme == "http" and not local:
        raise JoinRefused(
            "The token opens the message broker, so it goes over HTTPS only. Use https://… ."
        )
    return f"{parts.scheme}://{parts.netloc}"


def exchange(
    site: str,
    token: str,
    *,
    address: str,
    gpus: list[Gpu],
    disk_free_mib: int,
    transport: httpx.BaseTransport | None = None,
) -> dict[str, str]:
    """The settings. Not repeated on failure: the token may have been used up."""
    body = {
        "version": VERSION,
        "token": token,
        "address": address,
        "hostname": socket.gethostname()[:100],
        "gpus": [{"index": gpu.index, "name": gpu.name, "total_mib": gpu.total_mib}
                 for gpu in gpus],
        "disk_free_mib": disk_free_mib,
    }  # fmt: skip
    try:
        with httpx.Client(timeout=TIMEOUT, transport=transport, trust_env=False) as http:
            answer = http.post(f"{check_site(site)}/staff/servers/join", json=body)
    except httpx.HTTPError as error:
        raise JoinRefused(
            f"{site} did not answer ({type(error).__name__}). Nothing was written. "
            "If the server's page says that the token is used, ask for a new one."
        ) from None
    return _settings(answer)


def _settings(answer: httpx.Response) -> dict[str, str]:
    try:
        found = answer.json()
    except ValueError:
        found = None
    if answer.status_code != 200 or not isinstance(found, dict):
        text = found.get("text") if isinstance(found, dict) else None
        said = text[:300] if isinstance(text, str) and text.isprintable() else "no reason given"
        raise JoinRefused(f"The site refused ({answer.status_code}): {said} Nothing was written.")
    settings = found.get("settings")
    if not isinstance(settings, dict) or not set(REQUIRED) <= set(settings) <= SETTINGS:
        raise JoinRefused("The site's answer is not one this version understands. Update it.")
    for name, value in settings.items():
        if not (isinstance(value, str) and _SAFE.fullmatch(value)):
            raise JoinRefused(f"The site's value for {name} can't be used. Nothing was written.")
    return dict(settings)


def environment_file(given: Mapping[str, str], answered: Mapping[str, str]) -> str:
    """What was given on this host goes before what the site proposes. Checked by the reader."""
    settings = {"NAN_ROLE": "gpu", **answered, **given}
    try:
        Host.from_environ(settings)
    except HostError as error:
        raise JoinRefused(f"{error} Give it as an option of `join`.") from None
    return "".join(f'{name}="{_quoted(value)}"\n' for name, value in sorted(settings.items()))


def make_sure_of(file: Path, *, replace: bool) -> None:
    """Before the token is used up."""
    if file.exists() and not replace:
        raise JoinRefused(f"{file} is there already: this host has joined. Use --replace to redo.")
    try:
        write_atomically(file.with_name(f"{file.name}.try"), "")
        file.with_name(f"{file.name}.try").unlink()
    except OSError as error:
        raise JoinRefused(
            f"{file} can't be written ({error.strerror}). The token was not used; "
            "run as a user that may write there, or name another --file."
        ) from None


def _quoted(value: str) -> str:
    """Double quotes mean the same to systemd and to the shell with these escaped."""
    return re.sub(r'(["\\$`])', r"\\\1", value)
