import pytest

from tests.stack import Stack
from tests.visitor import Visitor


@pytest.fixture
def visitor(stack: Stack) -> Visitor:
    return Visitor(stack)


@pytest.fixture
def member(stack: Stack) -> Visitor:
    """A person who has just been let in and has no key yet."""
    return Visitor(stack).become_member()
