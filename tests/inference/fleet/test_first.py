"""What a new installation says on its console."""

import pytest
from django.utils import translation

from inference.fleet import first
from inference.models import Replica
from tests.inference.staff import rows


@pytest.mark.django_db
def test_the_console_is_in_one_language() -> None:
    rows.small_fleet(2)
    Replica.objects.update(state="starting")
    said: list[str] = []
    with translation.override("es"), pytest.raises(first.NotServing) as refused:
        first.wait_for_models(seconds=0.1, say=said.append)
    assert said == ["Waiting for nan (starting, starting)"]
    assert str(refused.value).startswith("Not serving after 0.1 s: nan (starting, starting).")
