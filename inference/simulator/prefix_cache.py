"""A model of vLLM's prefix cache: whole blocks of 16 tokens, least recently used ones go."""

from collections import OrderedDict

BLOCK = 16


class PrefixCache:
    """Keeps hashes of blocks chained to what came before; no text."""

    def __init__(self, *, capacity_tokens: int) -> None:
        self._capacity = max(1, capacity_tokens // BLOCK)
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def take(self, pieces: list[str]) -> int:
        """How many of these tokens were cached; they are from now on. The last token is always
        computed, so a prompt is never cached as a whole."""
        hits, chain, matching = 0, 0, True
        for start in range(0, len(pieces) - BLOCK + 1, BLOCK):
            chain = hash((chain, *pieces[start : start + BLOCK]))
            matching = matching and chain in self._blocks
            hits += BLOCK if matching and start + BLOCK < len(pieces) else 0
            self._blocks[chain] = None
            self._blocks.move_to_end(chain)
        while len(self._blocks) > self._capacity:
            self._blocks.popitem(last=False)
        return hits
