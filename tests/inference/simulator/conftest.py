from collections.abc import Iterator

import pytest

from tests.inference.simulator.engines import PARSERS, RunningEngine, running


@pytest.fixture(scope="session")
def engine() -> Iterator[RunningEngine]:
    """An engine with parsers for tools and reasoning, as the local stack starts it."""
    with running(*PARSERS, "--max-model-len", "4096") as started:
        yield started


@pytest.fixture(scope="session")
def bare() -> Iterator[RunningEngine]:
    """Without parsers, with keys, two places and one place in the queue."""
    limits = ("--max-num-seqs", "2", "--max-num-queued-reqs", "1")
    with running(*limits, "--api-key", "secret-one", "secret-two") as started:
        started.http.headers["authorization"] = "Bearer secret-two"
        yield started
