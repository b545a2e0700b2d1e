from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.inference.pool.proxy import Engine, Proxy, running


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    with running(tmp_path) as found:
        yield found


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine() as found:
        yield found


@pytest.fixture
def other() -> Iterator[Engine]:
    with Engine() as found:
        yield found
