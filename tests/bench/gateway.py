"""A gateway for a measurement of its own, with members whose limits are out of the way."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from deploy.gateway import config
from tests.gateway import parts
from tests.gateway.client import Gateway
from tests.stack import ROOT

UNLIMITED = {"rpm_limit": 1_000_000, "max_parallel_requests": 64}


@contextmanager
def gateway_before(api_base: str, *, model: str = "nan") -> Iterator[Gateway]:
    """LiteLLM with an empty database, which calls `api_base` for `model`."""
    engine = config.Model(
        names=(model,),
        engine_name=model,
        api_base=api_base,
        max_input_tokens=16_384,
        max_output_tokens=4_096,
    )
    with ExitStack() as started, tempfile.TemporaryDirectory(prefix="nan-bench-") as name:
        folder = Path(name)
        path = folder / "config.json"
        config.write(config.Settings(models=(engine,)), path)
        database = started.enter_context(parts.postgres(folder))
        redis_port = started.enter_context(parts.valkey(folder))
        environ = parts.environment(database, redis_port, parts.secrets_of_a_gateway())
        home = ROOT / ".nan" / "gateway"
        running = parts.gateway(folder, home=home, config=path, environ=environ)
        url = started.enter_context(running)
        yield started.enter_context(Gateway(url, environ["LITELLM_MASTER_KEY"]))


@contextmanager
def members(gateway: Gateway, count: int) -> Iterator[list[dict[str, str]]]:
    """What each of them sends to sign in."""
    with ExitStack() as made:
        yield [made.enter_context(gateway.member(**UNLIMITED)).headers for _ in range(count)]
