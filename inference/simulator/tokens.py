"""The tokenizer: a token is up to five word characters or one other character, with one
space before it if there is one. Pieces joined give the text back, so counts are exact."""

import re
import zlib

_TOKEN = re.compile(r" ?\w{1,5}| ?[^\w\s]|\s")

TURN_OVERHEAD = 4
"""Tokens a chat template adds to each turn."""
REPLY_OVERHEAD = 3
"""Tokens of the header that opens the assistant's turn."""


def split(text: str) -> list[str]:
    return _TOKEN.findall(text)


def count(text: str) -> int:
    return len(split(text))


def token_id(piece: str) -> int:
    """A stable number for a piece, within a vocabulary of 150,000."""
    return zlib.crc32(piece.encode("utf-8", "surrogatepass")) % 150_000
