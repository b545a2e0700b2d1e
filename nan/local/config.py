"""One answer to *where is it and with which secret*: from the environment, else embedded."""

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from . import ports, secrets
from .postgres import Cluster, locate

ROOT = Path(__file__).resolve().parent.parent.parent
HOST = ports.HOST

# Database connections that each process may hold: threads that run queries, plus the pool's spare.
# The edge lets in fewer pages at once that need the database than one process of the web has
# threads (deploy/haproxy/haproxy.cfg), so that others never wait behind them.
WEB_WORKERS, WEB_THREADS = 2, 8
POOL_SIZE: Mapping[str, int] = {
    "web": WEB_THREADS,
    "worker-default": 4,
    "worker-gateway": 8,
    "worker-fleet": 6,
    "beat": 1,
    "manage": 2,  # migrations and a developer's shell
}
GATEWAY_POOL_SIZE = 10
# "/admin.sock" and HAProxy's temporary suffix have to fit into 107 bytes as well.
LONGEST_SOCKET_FOLDER = 80
BAD_IN_HAPROXY = re.compile(r"[\s\"'\\#{}]")
# Superuser connections are kept apart by Postgres; the rest is for psql and for a test run.
SPARE_CONNECTIONS = 25
MAX_CONNECTIONS = (
    sum(POOL_SIZE.values())
    + POOL_SIZE["web"] * (WEB_WORKERS - 1)
    + GATEWAY_POOL_SIZE
    + SPARE_CONNECTIONS
)


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Addresses and secrets of one run. Its repr shows neither passwords nor keys."""

    state_dir: Path
    ports: Mapping[str, int]
    secrets: Mapping[str, str]
    environ: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Stack({self.state_dir})"

    @classmethod
    def load(
        cls, *, state_dir: Path, ports: Mapping[str, int], environ: Mapping[str, str] | None = None
    ) -> "Stack":
        state_dir.mkdir(parents=True, exist_ok=True)
        return cls(
            state_dir=state_dir,
            ports=ports,
            secrets=secrets.load_or_make(state_dir / "secrets.json"),
            environ=os.environ if environ is None else environ,
        )

    @classmethod
    def placeholder(cls) -> "Stack":
        """For type checkers and the like, which load the settings and connect to nothing."""
        unset = dict.fromkeys(secrets.MAKERS, "placeholder")
        return cls(state_dir=ROOT / ".nan", ports=ports.USUAL, secrets=unset, environ={})

    def _set(self, name: str) -> str:
        return self.environ.get(name, "")

    @property
    def site_url(self) -> str:
        """By name: browsers take no passkey for an address of digits."""
        return self._set("SITE_URL") or f"http://localhost:{self.ports['site']}"

    @property
    def api_url(self) -> str:
        return self._set("API_URL") or f"http://{HOST}:{self.ports['api']}"

    @property
    def embeds_postgres(self) -> bool:
        return not self._set("DATABASE_URL")

    @property
    def database_url(self) -> str:
        return self._set("DATABASE_URL") or self._embedded_database("nan")

    @property
    def litellm_database_url(self) -> str:
        """Its own variable, else the database `litellm` on the server that was given."""
        if self._set("LITELLM_DATABASE_URL"):
            return self._set("LITELLM_DATABASE_URL")
        if self.embeds_postgres:
            return self._embedded_database("litellm")
        return urlsplit(self.database_url)._replace(path="/litellm").geturl()

    def _embedded_database(self, name: str) -> str:
        password = quote(self.secrets[f"postgres_{name}"])
        return f"postgresql://{name}:{password}@{HOST}:{self.ports['postgres']}/{name}"

    @property
    def embeds_valkey(self) -> bool:
        return not self._set("REDIS_URL")

    @property
    def redis_url(self) -> str:
        embedded = f"redis://:{self.secrets['valkey']}@{HOST}:{self.ports['valkey']}/0"
        return self._set("REDIS_URL") or embedded

    def redis_settings(self) -> dict[str, str]:
        """The same server as LiteLLM wants to be told of it."""
        url = urlsplit(self.redis_url)
        return {
            "REDIS_HOST": url.hostname or HOST,
            "REDIS_PORT": str(url.port or 6379),
            "REDIS_PASSWORD": unquote(url.password or ""),
        }

    @property
    def embeds_gateway(self) -> bool:
        return not self._set("GATEWAY_URL")

    @property
    def gateway_url(self) -> str:
        return self._set("GATEWAY_URL") or f"http://{HOST}:{self.ports['gateway']}"

    @property
    def master_key(self) -> str:
        return self._set("LITELLM_MASTER_KEY") or self.secrets["litellm_master_key"]

    @property
    def salt_key(self) -> str:
        return self._set("LITELLM_SALT_KEY") or self.secrets["litellm_salt_key"]

    @property
    def edge_dir(self) -> Path:
        """HAProxy takes no socket path of 100 characters or more, and in its file no blanks."""
        folder = self.state_dir / "edge"
        if len(str(folder)) <= LONGEST_SOCKET_FOLDER and not BAD_IN_HAPROXY.search(str(folder)):
            return folder
        digest = hashlib.sha256(str(self.state_dir).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"nan-edge-{os.getuid()}-{digest}"

    @property
    def engine_api_key(self) -> str:
        return self._set("ENGINE_API_KEY") or self.secrets["engine_api_key"]

    def cluster(self) -> Cluster:
        roles = ("superuser", "nan", "litellm")
        passwords = {role: self.secrets[f"postgres_{role}"] for role in roles}
        passwords["postgres"] = passwords.pop("superuser")
        return locate(
            state_dir=self.state_dir,
            port=self.ports["postgres"],
            max_connections=MAX_CONNECTIONS,
            passwords=passwords,
        )
