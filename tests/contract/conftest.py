"""With CONTRACT_ENGINE=vllm (`make test-vllm`) every test here runs on real vLLM instead."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract import contenders
from tests.contract.contenders import Contender, Running

KIND = os.environ.get("CONTRACT_ENGINE", "simulator")
# The simulator's swaps are in tests/journeys; vLLM's own class is not in it.
collect_ignore = [] if KIND == "vllm" else ["test_real_swap.py", "test_speculation.py"]


@pytest.fixture(scope="session")
def contender(tmp_path_factory: pytest.TempPathFactory) -> Contender:
    if KIND == "vllm":
        return contenders.vllm()
    return contenders.simulator(tmp_path_factory.mktemp("hub"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For the engines' output."""
    return tmp_path_factory.mktemp("engines")


@pytest.fixture(scope="module")
def engine(contender: Contender, folder: Path) -> Iterator[Running]:
    """Two names, parsers, and room for 2048 tokens."""
    names = ("--served-model-name", "nan", "tiny", "--max-model-len", "2048")
    parsers = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
    details = ("--enable-prompt-tokens-details",)
    with contender.start(*names, *parsers, *details, folder=folder) as running:
        yield running.wait_healthy()
