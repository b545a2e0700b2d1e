"""What members read in the table of calls, beside whether they work."""

import re

import pytest

from inference.models import ProbeResult
from inference.probes import calls
from members.models import User
from tests.inference.fleet import rooms
from tests.pages.markup import words
from tests.people import signed_in


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("context", "size"),
    [
        (65_536, ""),
        (calls.LONGEST * 4 // 3, ""),
        (1_000_000, "with 200,000 tokens"),
    ],
)
def test_a_prompt_that_was_cut_says_its_size(member: User, context: int, size: str) -> None:
    """The call is called a prompt close to the longest; of a very long context it is a fifth."""
    slot = rooms.slot(model=rooms.catalog_model("old-model", context_length=context))
    for name in ("chat", "long_context"):
        ProbeResult.objects.create(slot=slot, model=slot.model, call=name, ok=True)
    page = words(signed_in(member).get("/docs/examples/works/").content.decode())
    cut = page.split("A prompt close to the longest works ")[1]
    assert re.findall(r"with [\d,]+ tokens", page) == [size] * bool(size)
    assert cut.startswith(size)
