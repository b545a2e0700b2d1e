"""Keys in members' texts are found, and what only looks long is not."""

import random
import string

import pytest

from members import leaks

R = random.Random(20261129)


def random_word(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(R.choice(letters) for _ in range(length))


KEYS = [
    "sk-" + random_word(22),
    "sk-ant-api03-" + random_word(40),
    "sk-proj-" + random_word(30),
    "hf_" + random_word(34),
    "ghp_" + random_word(36),
    "github_pat_" + random_word(40),
    "glpat-" + random_word(20),
    "xoxb-123456789012-" + random_word(24),
    "AKIA" + random_word(16, string.ascii_uppercase + string.digits),
    "AIza" + random_word(35),
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "Authorization: Bearer " + random_word(20),
    "bearer: " + random_word(16),
    "postgres://nan:hunter2hunter@db.example/x",
    random_word(40),
    random_word(44, string.ascii_letters + string.digits + "+/"),
    random_word(32, "0123456789abcdef"),
    random_word(64, "0123456789abcdef"),
]


@pytest.mark.parametrize("key", KEYS)
def test_keys_are_found_wherever_they_stand(key: str) -> None:
    for text in (key, f"use `{key}` here", f'{{"apiKey": "{key}"}}', f"```\nexport X={key}\n```"):
        found = leaks.find(text)
        assert found is not None, text
        assert key not in found.hint
        assert len(found.hint) <= 5


@pytest.mark.parametrize("hidden", ["\u200b", "\u200d", "\u2060", "\u00ad", "\ufeff"])
def test_letters_that_nobody_sees_hide_nothing(hidden: str) -> None:
    key = KEYS[0]
    assert leaks.find(hidden.join(key)) is not None


def test_full_width_letters_hide_nothing() -> None:
    wide = "".join(chr(ord(char) + 0xFEE0) for char in KEYS[0])
    assert leaks.find(wide) is not None


@pytest.mark.parametrize(
    "text",
    [
        "YOUR_KEY",
        "sk-...",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxx",
        "sk-your-key-goes-here-please",
        "Authorization: Bearer $NAN_API_KEY",
        "Authorization: Bearer YOUR_KEY_GOES_HERE",
        "export OPENAI_API_KEY=<your key, without quotes>",
        "commit 95a723d08a9490559dae23d0cff1d9466213d989 fixes it",
        "https://github.com/sst/opencode/issues/41081#issuecomment-1234567890",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
        "@ai-sdk/openai-compatible needs includeUsage",
        "~/.config/io.datasette.llm/extra-openai-models.yaml",
        "org.apache.commons.lang3.exception.ExceptionUtils2",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "Qwen/Qwen3.6-35B-A3B-FP8 at max_model_len 131072",
        "task-force-of-the-long-kebab-case-names-2026",
        "http://127.0.0.1:8080/v1",
    ],
)
def test_what_is_no_key_passes(text: str) -> None:
    assert leaks.find(text) is None
