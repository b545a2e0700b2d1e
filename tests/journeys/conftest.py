from collections.abc import Callable, Iterator

import pytest

from tests.api import ApiClient, EngineCounts, GatewayAdmin
from tests.fleet import Fleet
from tests.stack import Stack
from tests.visitor import Visitor, admin, ask_for_keys, members

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


@pytest.fixture(scope="session")
def _fleet(stack: Stack) -> Iterator[Fleet]:
    fleet = Fleet(stack)
    yield fleet
    fleet.close()


@pytest.fixture
def fleet(_fleet: Fleet) -> Fleet:
    """All replicas serve the same model when a test begins."""
    _fleet.go_home(HOME)
    return _fleet


@pytest.fixture(scope="session")
def load_key(gateway: GatewayAdmin) -> str:
    """For steady traffic: without a member's limits."""
    return str(gateway.make(key_alias="load")["key"])


@pytest.fixture(scope="session")
def staff(stack: Stack) -> Visitor:
    return admin(stack)


HOME = "qwen3.6-35b-a3b"
MAKING = "Your key is being made at the gateway."
TRYING = "The gateway does not answer right now. We keep trying; you need not do anything."


@pytest.fixture(scope="session")
def lost_answers(stack: Stack) -> list[tuple[Visitor, str]]:
    """People and their keys. The gateway acted on what it was asked for after we had given up."""
    people = members(stack, 3)
    with stack.frozen("gateway"):
        ask_for_keys(people)
        for person in people:
            assert MAKING in person.until(TRYING, seconds=30)
    return [(person, person.reveal(seconds=60)) for person in people]
