import secrets

import pytest

from deploy.gateway import credentials


def problems(master: str, salt: str) -> list[str]:
    return credentials.problems({"LITELLM_MASTER_KEY": master, "LITELLM_SALT_KEY": salt})


@pytest.mark.parametrize("make", [lambda: secrets.token_urlsafe(32), lambda: secrets.token_hex(32)])
def test_random_secrets_are_accepted(make) -> None:
    assert [problems("sk-" + make(), make()) for _ in range(200)] == [[]] * 200


@pytest.mark.parametrize(
    "weak",
    [
        "sk-1234",
        "sk-" + "1234" * 10,
        "sk-" + "a" * 40,
        "sk-abcdefghijklmnopqrstuvwxyz0123456789",
        "sk-master-local-only-master-local-only",
        "sk-my-very-secret-master-key-for-litellm",
    ],
)
def test_guessable_secrets_are_refused_and_not_repeated(weak: str) -> None:
    good = secrets.token_urlsafe(32)
    for found in (problems(weak, good), problems("sk-" + good, weak)):
        assert len(found) == 1
        assert weak not in credentials.complaint(found)


def test_each_missing_secret_is_named() -> None:
    assert problems("", "") == ["LITELLM_MASTER_KEY is not set.", "LITELLM_SALT_KEY is not set."]


def test_a_master_key_begins_with_sk() -> None:
    assert len(problems(secrets.token_urlsafe(32), secrets.token_urlsafe(32))) == 1


def test_the_salt_is_not_the_master_key() -> None:
    key = "sk-" + secrets.token_urlsafe(32)
    assert len(problems(key, key)) == 1
