"""Keys in members' texts are found, and what only looks long is not."""

import random
import re
import string
from urllib.parse import quote

import pytest

from nan import leaks

R = random.Random(20261129)


def random_word(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(R.choice(letters) for _ in range(length))


HEX = "0123456789abcdef"
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
    "Authorization: Basic " + random_word(24) + "==",
    "sk-" + random_word(11) + "_" + random_word(10),  # as our gateway makes them
    "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ." + random_word(120) + "." + random_word(86),
    random_word(34, HEX),  # no digest has this length
    random_word(48, HEX),
]
NAMED = ["api_key={}", '"apiKey": "{}"', "X-API-Key: {}", "--token {}", "my key is {}", "clave: {}"]


@pytest.mark.parametrize("key", KEYS)
def test_keys_are_found_wherever_they_stand(key: str) -> None:
    for text in (key, f"use `{key}` here", f'{{"apiKey": "{key}"}}', f"```\nexport X={key}\n```"):
        found = leaks.find(text)
        assert found is not None, text
        assert key not in found.hint
        assert len(found.hint) <= 5


@pytest.mark.parametrize("called", NAMED)
@pytest.mark.parametrize("length", [28, 32, 40, 64])
def test_what_is_called_a_key_is_one_though_it_looks_like_a_digest(
    called: str, length: int
) -> None:
    assert leaks.find(called.format(random_word(length, HEX))) is not None


@pytest.mark.parametrize("called", NAMED[:3])
def test_a_short_value_that_is_called_a_key_is_one(called: str) -> None:
    assert leaks.find(called.format("k2n8v5q1x7w3t9z4")) is not None


@pytest.mark.parametrize("length", [32, 40, 56, 64, 96, 128])
def test_digests_and_commits_pass(length: int) -> None:
    digest = random_word(length, HEX)
    for text in (
        digest,
        digest.upper(),
        f"sha256:{digest}",
        f"`ghcr.io/some/image@sha256:{digest}`",
        f"--hash=sha256:{digest}",
        f"commit {digest} fixes it",
        f"https://github.com/some/client/commit/{digest}",
        f"{digest}  opencode-linux-x64.tar.gz",
        f'checksum = "{digest}"',
    ):
        assert leaks.find(text) is None, text


@pytest.mark.parametrize(("name", "length"), [("sha256", 43), ("sha384", 64), ("sha512", 86)])
def test_checksums_of_lock_files_pass(name: str, length: int) -> None:
    digest = random_word(length, string.ascii_letters + string.digits + "+/")
    assert leaks.find(f'"integrity": "{name}-{digest}=="') is None
    assert leaks.find(f"{name}-{digest}{random_word(9)}") is not None


@pytest.mark.parametrize("hidden", ["\u200b", "\u200d", "\u2060", "\u00ad", "\ufeff"])
def test_letters_that_nobody_sees_hide_nothing(hidden: str) -> None:
    key = KEYS[0]
    assert leaks.find(hidden.join(key)) is not None


def test_full_width_letters_hide_nothing() -> None:
    wide = "".join(chr(ord(char) + 0xFEE0) for char in KEYS[0])
    assert leaks.find(wide) is not None


@pytest.mark.parametrize("key", KEYS)
def test_another_way_to_write_its_characters_hides_nothing(key: str) -> None:
    """As addresses, HTML and Markdown may; in an address within an address, twice."""
    percent = "".join(f"%{byte:02X}" for byte in key.encode())
    marked = re.sub(r"([^A-Za-z0-9\s])", r"\\\1", key)
    for text in (
        f"https://x.example/?q={quote(key, safe='')}",
        f"https://x.example/?q={percent}",
        f"https://x.example/?next={quote(percent, safe='')}",
        "".join(f"&#{ord(char)};" for char in key),
        "".join(f"&#x{ord(char):x};" for char in key),
        f"use {marked} here",
    ):
        found = leaks.find(text)
        assert found is not None, text
        assert len(found.hint) <= 5


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
        'apiKey: process.env.NAN_API_KEY, env_key = "NAN_API_KEY_2026"',
        '"options": {"apiKey": "{env:NAN_API_KEY}"}',
        "model_key: qwen3-6-35b-a3b-fp8",
        "The basic configuration uses Bearer Authentication, bearer authentication works too",
        "api_key_name: nan, max_tokens=131072",
        "https://github.com/sst/opencode/issues?q=is%3Aissue+compaction%20never%20starts",
        "https://x.example/?next=https%3A%2F%2Fgithub.com%2Fsst%2Fopencode%2Fblob%2FREADME.md",
        "50 % of the calls, 100%25 of them, &lt;your key&gt; &amp; \\*stars\\*",
    ],
)
def test_what_is_no_key_passes(text: str) -> None:
    assert leaks.find(text) is None
