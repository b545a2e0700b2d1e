"""How several processes share the tests (`make test`).

The tests of a file stay together. Those of the whole stack are three shares, for processes that
each start one: swaps of models, parts killed in the midst of them, and the rest. By paths, because
the process that hands out knows no more; xdist's own groups do nothing with pytest 9.2.
"""

from pathlib import PurePosixPath

from xdist.scheduler import LoadScopeScheduling

ON_STACK = (
    "tests/browser/test_journey.py",
    "tests/browser/test_swap_by_click.py",
    "tests/browser/test_vote_round.py",
    "tests/monitoring/test_scrapes.py",
)
"""Beside all of tests/journeys."""


def on_stack(nodeid: str) -> bool:
    path = _path(nodeid)
    return path.startswith("tests/journeys/") or path in ON_STACK


class Shares(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        if not on_stack(nodeid):
            return _path(nodeid)
        file = PurePosixPath(_path(nodeid)).name
        if file == "test_swap_kills.py":
            return "kills"
        return "swaps" if file.startswith("test_swap") else "stack"


def _path(nodeid: str) -> str:
    return nodeid.partition("::")[0]
