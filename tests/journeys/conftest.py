from collections.abc import Callable

import pytest

from tests.api import ApiClient, EngineCounts, GatewayAdmin
from tests.stack import Stack
from tests.visitor import Visitor, members

Client = Callable[[str], ApiClient]


@pytest.fixture
def visitor(stack: Stack) -> Visitor:
    return Visitor(stack)


@pytest.fixture
def member(stack: Stack) -> Visitor:
    """A person who has just been let in and has no key yet."""
    return members(stack, 1)[0]


@pytest.fixture(scope="session")
def gateway(stack: Stack) -> GatewayAdmin:
    return GatewayAdmin(stack)


@pytest.fixture(scope="session")
def engine(stack: Stack) -> EngineCounts:
    return EngineCounts(stack)


@pytest.fixture(scope="session")
def client(stack: Stack) -> Client:
    return lambda key: ApiClient(stack.api, key)
