"""The two secrets that a gateway may not start without.

The master key opens everything: keys, models, limits. The salt encrypts what LiteLLM stores about
models; it falls back to the master key where it is missing, and then changing that key would make
the stored models unreadable.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

MASTER_KEY = "LITELLM_MASTER_KEY"
SALT_KEY = "LITELLM_SALT_KEY"
LENGTH = 32
# Random hexadecimal text of 32 characters has over 70 bits by this measure; repeated words, runs
# and counting up have fewer than 60.
BITS = 64
GENERATE = "python3 -c 'import secrets; print(\"sk-\" + secrets.token_urlsafe(32))'"
NOT_RANDOM = ("1234", "abcd", "changeme", "password", "secret", "master", "example", "litellm")


def problems(environment: Mapping[str, str]) -> list[str]:
    """What is wrong with the secrets, in sentences that never repeat them."""
    master, salt = environment.get(MASTER_KEY, ""), environment.get(SALT_KEY, "")
    found = [
        text
        for name, value in ((MASTER_KEY, master), (SALT_KEY, salt))
        if (text := _problem(name, value))
    ]
    if master and not master.startswith("sk-"):
        found.append(
            f"{MASTER_KEY} does not start with `sk-`, so LiteLLM would not take it as a key."
        )
    if not found and master == salt:
        found.append(
            f"{MASTER_KEY} and {SALT_KEY} are the same; neither could be changed without the other."
        )
    return found


def complaint(found: list[str]) -> str:
    return "\n".join(
        [
            "Not started:",
            *(f"  {text}" for text in found),
            f"Make each of them once with: {GENERATE}",
        ]
    )


def _problem(name: str, value: str) -> str | None:
    if not value:
        return f"{name} is not set."
    if len(value) < LENGTH:
        return f"{name} is too short: {len(value)} characters, at least {LENGTH} are needed."
    if _bits(value.removeprefix("sk-")) < BITS:
        return f"{name} can be guessed: it is not random."
    return None


def _bits(text: str) -> float:
    """Shannon's entropy of the characters used, less what well-known words and runs make up."""
    lowered = text.lower()
    for word in NOT_RANDOM:
        lowered = lowered.replace(word, "")
    steps = sum(abs(ord(a) - ord(b)) > 1 for a, b in pairwise(lowered))
    counts = Counter(lowered).values()
    each = -sum(n / len(lowered) * math.log2(n / len(lowered)) for n in counts) if lowered else 0
    return each * steps
