import pytest

from tests.inference.staff import rows
from tests.inference.staff.pages import Fleet


@pytest.fixture
def fleet(db: None) -> Fleet:
    return rows.small_fleet(2)
