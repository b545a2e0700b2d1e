"""The gateway under test: the one that NAN_TEST_GATEWAY_URL names, or one of these tests' own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.gateway import config
from tests.gateway import parts
from tests.gateway.client import Gateway, Member, Models


@dataclass(frozen=True)
class Own:
    """A gateway that these tests started, with everything around it."""

    folder: Path
    home: Path
    config: Path
    url: str
    database: str
    redis_port: int
    environ: dict[str, str]


@pytest.fixture(scope="session")
def gateway_home() -> Path:
    home = Path(os.environ.get("NAN_GATEWAY_HOME", parts.ROOT / ".nan" / "gateway"))
    if not (home / "installed.json").exists():
        raise pytest.UsageError(
            f"{home} is not installed: python deploy/gateway/install.py --target {home}"
        )
    return home


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """Not pytest's own: other runs clear that away, and Postgres stops without its folder."""
    with tempfile.TemporaryDirectory(prefix="nan-gateway-", ignore_cleanup_errors=True) as path:
        yield Path(path)


@pytest.fixture(scope="session")
def engine(folder: Path) -> Iterator[str]:
    with parts.upstream(folder) as url:
        yield url


@pytest.fixture(scope="session")
def database(folder: Path) -> Iterator[str]:
    with parts.postgres(folder) as url:
        yield url


@pytest.fixture(scope="session")
def own_gateway(folder: Path, gateway_home: Path, engine: str, database: str) -> Iterator[Own]:
    path = folder / "config.json"
    config.write(config.Settings(models=(file_model(engine),)), path)
    with ExitStack() as stack:
        port = stack.enter_context(parts.valkey(folder))
        environ = parts.environment(database, port, parts.secrets_of_a_gateway())
        started = parts.gateway(folder, home=gateway_home, config=path, environ=environ)
        url = stack.enter_context(started)
        yield Own(folder, gateway_home, path, url, database, port, environ)


def file_model(engine: str) -> config.Model:
    return config.Model(
        names=("stable", "known-by-itself"),
        engine_name="fake",
        api_base=f"{engine}/v1",
        max_input_tokens=32768,
        max_output_tokens=4096,
    )


@pytest.fixture(scope="session")
def gateway_url(request: pytest.FixtureRequest) -> str:
    url = os.environ.get("NAN_TEST_GATEWAY_URL")
    return url if url else request.getfixturevalue("own_gateway").url


@pytest.fixture(scope="session")
def master_key(request: pytest.FixtureRequest) -> str:
    if os.environ.get("NAN_TEST_GATEWAY_URL"):
        return os.environ["LITELLM_MASTER_KEY"]
    key: str = request.getfixturevalue("own_gateway").environ["LITELLM_MASTER_KEY"]
    return key


@pytest.fixture(scope="session")
def gateway(gateway_url: str, master_key: str) -> Iterator[Gateway]:
    with Gateway(gateway_url, master_key) as found:
        yield found


@pytest.fixture(scope="session")
def models(gateway: Gateway, engine: str) -> Iterator[Models]:
    """One model for each of the engine's manners, added at run time under names of this run."""
    added = Models.add(gateway, engine)
    yield added
    added.remove()


@pytest.fixture
def alice(gateway: Gateway, models: Models) -> Iterator[Member]:
    """A member with a key like the product's: 5 in parallel, 100 a minute."""
    with gateway.member() as member:
        yield member
