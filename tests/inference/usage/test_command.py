"""`manage.py usage` for scripts and bad days."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from inference.gateway import Gateway
from inference.models import Key, UsageDay
from inference.usage import pull
from tests.fakes.gateway import MASTER_KEY, FakeGateway
from tests.inference.usage.conftest import Clock

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str],
    client_of_fake: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
) -> Callable[..., Any]:
    settings.LITELLM_MASTER_KEY = MASTER_KEY
    monkeypatch.setattr(pull, "gateway", lambda: client_of_fake)

    def command(*words: str) -> Any:
        call_command("usage", *words, "--json")
        return json.loads(capsys.readouterr().out)

    return command


def test_pull_and_show(
    run: Callable[..., Any], key: Key, others_key: Key, counts: Callable[..., None], clock: Clock
) -> None:
    counts(clock.today, key.token, prompt=7)
    counts(clock.today, others_key.token, model="qwen")
    assert run("pull") == [{"days": 1, "changed": 2, "code": ""}]
    (day,) = run("show", "--days", "7")
    assert (day["day"], day["requests"], day["prompt_tokens"]) == (clock.today.isoformat(), 2, 17)
    assert {row["model"]: row["prompt_tokens"] for row in run("show", "--by", "model")} == {
        "nan": 7,
        "qwen": 10,
    }
    assert {row["member"] for row in run("show", "--by", "member")} == {
        str(key.holder_id),
        str(others_key.holder_id),
    }


def test_a_closed_day_again(run: Callable[..., Any], key: Key, counts: Callable[..., None]) -> None:
    UsageDay.objects.create(day="2026-01-31", closed=True)
    counts("2026-01-31", key.token)
    assert run("pull", "--day", "2026-01-31") == [{"days": 1, "changed": 1, "code": ""}]


def test_what_it_says_when_it_can_not(
    run: Callable[..., Any], fake: FakeGateway, settings: Settings
) -> None:
    fake.stop()
    with pytest.raises(CommandError, match=r"can't be read now \(unreachable\)"):
        run("pull")
    fake.start()
    with pytest.raises(CommandError, match="a day such as"):
        run("pull", "--day", "yesterday")
    settings.LITELLM_MASTER_KEY = ""
    with pytest.raises(CommandError, match="LITELLM_MASTER_KEY is not set"):
        run("pull")
