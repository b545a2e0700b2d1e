"""Keys, the master key and prompts: in no table, no Redis key, no log, no mail."""

import re
from functools import partial

import httpx
import pytest

from tests.api import ROUTES, ApiClient
from tests.secrets_search import find_everywhere, holds, variants
from tests.stack import Stack
from tests.visitor import Visitor, members
from tests.waiting import at_once, wait_until

PROMPT = "the heron painted seventeen violet umbrellas"
FATES = ("", "[sim:echo-error]", "[sim:status=500]", "[sim:status=404]", "[sim:die-midstream]")


def places(stack: Stack, secret: str) -> list[str]:
    """Where it is. The file in which the stack keeps its own secrets is left out."""
    folders = [stack.state_dir / name for name in ("logs", "mail", "run", "valkey", "edge")]
    assert all(folder.is_dir() for folder in folders[:2])
    found = find_everywhere(
        secret,
        databases=stack.databases,
        redis_url=stack.env["REDIS_URL"],
        folders=[folder for folder in folders if folder.is_dir()],
    )
    return [*found, *(["run.log"] if secret in stack.tail(10**9) else [])]


@pytest.fixture(scope="module")
def keys(stack: Stack, lost_answers: list[tuple[Visitor, str]]) -> dict[str, str]:
    """One created, one after a rotation, one whose first creation failed; all used."""
    created, rotated = members(stack, 2)
    found = {"created": created.create_key(), "rotated away": rotated.create_key()}
    rotated.post("/key/rotate")
    found["rotated to"] = rotated.reveal()
    found["after a failure"] = lost_answers[0][1]
    for key in found.values():
        assert ApiClient(stack.api, key).call().status_code == 200
    return found


@pytest.mark.parametrize("which", ["created", "rotated away", "rotated to", "after a failure"])
def test_a_key_is_nowhere(stack: Stack, keys: dict[str, str], which: str) -> None:
    assert places(stack, keys[which]) == []


def test_the_master_key_is_nowhere(stack: Stack, keys: dict[str, str]) -> None:
    for name in ("litellm_master_key", "litellm_salt_key", "engine_api_key", "django_secret_key"):
        assert places(stack, stack.secrets[name]) == [], name


def test_the_search_finds_what_is_there(stack: Stack, keys: dict[str, str]) -> None:
    """The gateway's own id of a key, its SHA-256, is in both databases."""
    (alias,) = re.findall(r"person\d+@example.org", stack.mails("example.org")[-1]["To"])
    assert any(place.startswith("postgres nan") for place in places(stack, alias))
    assert any("mail" in place for place in places(stack, alias))


def test_a_prompt_is_nowhere(stack: Stack, keys: dict[str, str]) -> None:
    """Also that of a call that fails, and of one whose client leaves."""
    api = ApiClient(stack.api, keys["created"])
    for route in ROUTES:
        calls = [partial(api.call, route, f"{PROMPT} {fate}") for fate in FATES]
        answers = at_once(calls)
        assert answers[0].status_code == 200
        assert [answer.status_code >= 400 for answer in answers[1:4]] == [True] * 3
        at_once([partial(stopped, api, route, stream) for stream in (False, True)])
    wait_until(lambda: usage_is_written(stack), seconds=40, what="the gateway's daily totals")
    assert places(stack, PROMPT) == []


def stopped(api: ApiClient, route: str, stream: bool) -> None:
    api.leave_waiting(route, f"{PROMPT} [sim:hang]", seconds=1, stream=stream)


def usage_is_written(stack: Stack) -> bool:
    """The gateway writes what it keeps of calls seconds later; only then is there all to find."""
    import psycopg

    with psycopg.connect(stack.databases[1]) as connection:
        query = 'SELECT coalesce(sum(api_requests), 0) FROM "LiteLLM_DailyUserSpend"'
        row = connection.execute(query).fetchone()
    return bool(row and row[0] > 0)


def test_no_cookie_and_no_address_holds_the_key(stack: Stack) -> None:
    """K9, K10: shown once, on a page that no browser keeps."""
    person = members(stack, 1)[0]
    seen: list[httpx.Response] = []
    person.http.event_hooks["response"].append(seen.append)
    key = person.create_key()
    assert person.http.get("/key/reveal").url.path == "/key/"
    assert "Show my key" not in person.get("/key/")
    shown = [answer for answer in seen if key in answer.read().decode()]
    assert [answer.request.method for answer in shown] == ["POST"]
    assert "no-store" in shown[0].headers["cache-control"]
    for answer in seen:
        assert key not in str(answer.url)
        cookies = " ".join(answer.headers.get_list("set-cookie"))
        assert not holds(cookies.encode(), variants(key))


def test_what_a_person_downloads_holds_no_key(stack: Stack) -> None:
    person: Visitor = members(stack, 1)[0]
    key = person.create_key()
    assert key not in person.get("/account/export/")
