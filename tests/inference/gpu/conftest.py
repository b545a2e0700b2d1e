from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.inference.gpu.rig import Rig, running


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    yield from running(tmp_path)
