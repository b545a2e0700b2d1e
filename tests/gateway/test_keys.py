"""What the product relies on when it makes, blocks and deletes keys."""

import secrets
import threading
import time
import uuid

import pytest

from tests.gateway.client import ALLOWED, ROUTES, Gateway, Member, Models, token


def test_our_own_key_is_taken_and_its_token_is_its_hash(gateway: Gateway) -> None:
    key, answer = gateway.generate(metadata={"member": "opaque"})
    found = answer.json()
    assert answer.status_code == 200
    assert (found["key"], found["token"]) == (key, token(key))
    info = gateway.get("/key/info", key=token(key)).json()["info"]
    assert info["metadata"] == {"member": "opaque"}
    assert (info["rpm_limit"], info["max_parallel_requests"]) == (100, 5)
    assert info["allowed_routes"] == ALLOWED


def test_a_key_has_no_token_limit_budget_or_expiry(gateway: Gateway) -> None:
    """L6."""
    key, _ = gateway.generate()
    info = gateway.get("/key/info", key=token(key)).json()["info"]
    never = ("tpm_limit", "max_budget", "budget_duration", "expires")
    assert {name: info[name] for name in never} == dict.fromkeys(never)


def test_no_user_row_is_made(gateway: Gateway) -> None:
    """K13: none is needed for a key's calls to count; with one, the member's key could mint keys
    without limits."""
    user = f"member-{uuid.uuid4().hex}"
    gateway.generate(user_id=user)
    assert gateway.get("/user/list", user_ids=user).json()["users"] == []


def test_an_alias_is_unique(gateway: Gateway) -> None:
    _, first = gateway.generate()
    _, second = gateway.generate(key_alias=first.json()["key_alias"])
    assert second.status_code == 400
    assert "already exists" in second.json()["error"]["message"]


def test_a_repeated_create_is_told_by_its_alias(gateway: Gateway) -> None:
    """What a retry after a lost answer meets."""
    key, first = gateway.generate()
    _, again = gateway.generate(key=key, key_alias=first.json()["key_alias"])
    assert again.status_code == 400
    assert gateway.get("/key/info", key=token(key)).json()["info"]["rpm_limit"] == 100


def test_the_same_key_under_another_alias_changes_nothing_but_says_200(gateway: Gateway) -> None:
    key, first = gateway.generate()
    _, again = gateway.generate(key=key, rpm_limit=7)
    assert again.status_code == 200
    info = gateway.get("/key/info", key=token(key)).json()["info"]
    assert (info["key_alias"], info["rpm_limit"]) == (first.json()["key_alias"], 100)


@pytest.mark.parametrize("key", ["sk-short", "without-prefix-but-long-enough-to-be-one"])
def test_a_malformed_key_is_refused(gateway: Gateway, key: str) -> None:
    assert gateway.generate(key=key)[1].status_code == 400


def test_a_new_key_works_at_once(gateway: Gateway) -> None:
    with gateway.member() as bob:
        assert bob.get("/v1/models").status_code == 200


@pytest.mark.parametrize("route", ROUTES)
def test_unknown_and_blocked_keys_get_401(
    gateway: Gateway, alice: Member, models: Models, route: str
) -> None:
    stranger = Member(key="sk-" + secrets.token_urlsafe(32), http=alice.http)
    assert stranger.call(route, models["plain"]).status_code == 401
    assert alice.call(route, models["plain"]).status_code == 200
    assert gateway.post("/key/block", key=alice.token).status_code == 200
    assert alice.call(route, models["plain"]).status_code == 401
    assert gateway.post("/key/unblock", key=alice.token).status_code == 200
    assert alice.call(route, models["plain"]).status_code == 200


def test_a_block_holds_under_traffic(gateway: Gateway, models: Models) -> None:
    """K7: calls in flight must not bring the unblocked key back into the cache."""
    with gateway.member(rpm_limit=100_000) as bob:
        answers: list[tuple[float, int]] = []
        ended = threading.Event()

        def traffic() -> None:
            while not ended.is_set():
                answers.append((time.monotonic(), bob.chat(models["plain"]).status_code))

        threads = [threading.Thread(target=traffic) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(1)
        gateway.post("/key/block", key=bob.token)
        blocked = time.monotonic()
        time.sleep(2)
        ended.set()
        for thread in threads:
            thread.join()
    assert {status for at, status in answers if at > blocked + 0.5} == {401}
    assert 200 in {status for at, status in answers if at < blocked}


def test_blocking_then_deleting_ends_a_key_at_once(gateway: Gateway, models: Models) -> None:
    with gateway.member() as bob:
        bob.chat(models["plain"])
        gateway.post("/key/block", key=bob.token)
        assert gateway.post("/key/delete", keys=[bob.token]).json() == {"deleted_keys": [bob.token]}
        assert bob.chat(models["plain"]).status_code == 401


def test_a_deleted_key_is_still_told_about_but_as_deleted(gateway: Gateway) -> None:
    """From LiteLLM's archive; so a 200 of /key/info does not mean that a key is there."""
    key, _ = gateway.generate()
    assert status_of(gateway, key) == "active"
    gateway.post("/key/block", key=token(key))
    assert status_of(gateway, key) == "revoked"
    gateway.post("/key/delete", keys=[token(key)])
    assert status_of(gateway, key) == "deleted"
    assert gateway.get("/key/list", key_hash=token(key)).json()["keys"] == []
    assert gateway.get("/key/info", key="0" * 64).status_code == 404


def status_of(gateway: Gateway, key: str) -> str:
    status: str = gateway.get("/key/info", key=token(key)).json()["info"]["status"]
    return status


def test_the_alias_of_a_deleted_key_is_free(gateway: Gateway) -> None:
    key, first = gateway.generate()
    gateway.post("/key/delete", keys=[token(key)])
    assert gateway.generate(key_alias=first.json()["key_alias"])[1].status_code == 200


@pytest.mark.parametrize("path", ["/key/block", "/key/unblock", "/key/update"])
def test_unknown_tokens_are_404(gateway: Gateway, path: str) -> None:
    assert gateway.post(path, key="0" * 64).status_code == 404


def test_deleting_an_unknown_token_is_404(gateway: Gateway) -> None:
    assert gateway.post("/key/delete", keys=["0" * 64]).status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/model/info"),
        ("GET", "/v1/model/info"),
        ("GET", "/key/info"),
        ("GET", "/key/list"),
        ("GET", "/user/daily/activity"),
        ("GET", "/spend/logs"),
        ("POST", "/key/generate"),
        ("POST", "/key/update"),
        ("POST", "/model/new"),
        ("POST", "/user/new"),
    ],
)
def test_a_members_key_reaches_inference_only(alice: Member, method: str, path: str) -> None:
    """L4."""
    assert alice.http.request(method, path, headers=alice.headers, json={}).status_code == 403


def test_all_keys_can_be_paged_through(gateway: Gateway) -> None:
    """The reconciler's read: whole objects, a stable order, at most 100 on a page."""
    made = {token(gateway.generate()[0]) for _ in range(3)}
    first = list_page(gateway, 1, size=2)
    pages = [list_page(gateway, number, size=2) for number in range(1, first["total_pages"] + 1)]
    tokens = [key["token"] for page in pages for key in page["keys"]]
    assert made <= set(tokens)
    assert tokens == sorted(set(tokens))
    wanted = {"token", "key_alias", "blocked", "rpm_limit", "max_parallel_requests", "user_id"}
    assert wanted <= set(first["keys"][0])
    assert list_page(gateway, first["total_pages"] + 1, size=2)["keys"] == []
    assert gateway.get("/key/list", size=101).status_code == 422


def list_page(gateway: Gateway, page: int, *, size: int) -> dict:
    order = {"sort_by": "token", "sort_order": "asc"}
    answer = gateway.get("/key/list", page=page, size=size, return_full_object=True, **order)
    assert answer.status_code == 200, answer.text
    found: dict = answer.json()
    return found
