"""What the pool says of a rotation comes through, so that the edge can tell it to the client."""

import pytest

from tests.gateway.client import ROUTES, Member, Models


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_a_rotation_is_handed_on_with_its_beginning(
    alice: Member, models: Models, route: str, stream: bool
) -> None:
    for _ in range(3):  # no cooldown takes its place
        answer = alice.call(route, models["rotating"], stream=stream)
        assert answer.status_code >= 429
        assert "A model rotation is under way since 14:05 UTC: the" in answer.text
