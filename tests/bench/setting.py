"""The stack under measurement, and the people that its measurements share."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg

from inference.gateway import ALLOWED_ROUTES, NewKey
from tests.bench import inside
from tests.bench.wire import Answer, Browser, Wire
from tests.stack import Stack

SEATS = 100_000
PATIENCE = 120
MADE = """
    SELECT count(*), max(active_at) FROM inference_key
    WHERE state = 'active' AND holder_id = ANY(%s::uuid[])
"""


@contextmanager
def own_stack(folder: Path, *, only: str = "", **extra: str) -> Iterator[Stack]:
    """Started afresh and forgotten at the end. After a failure its folder stays, with the logs."""
    _forget(folder)
    stack = Stack(folder, only=only, extra=extra)
    try:
        yield stack.start()
    finally:
        stack.stop()
    _forget(folder)


def _forget(folder: Path) -> None:
    """Also what a killed run left: processes, and a database outside of the folder."""
    if folder.exists():
        stack = Stack(folder)
        stack.local("stop")
        stack.local("clean-data", "--yes")
        shutil.rmtree(folder)


@dataclass
class Setting:
    stack: Stack

    def rows(self, verb: str, *numbers: int) -> Any:
        """What `tests.bench.rows` answers inside this stack's settings."""
        return inside.ask(self.stack, "rows", verb, *numbers)

    @cached_property
    def admin(self) -> Browser:
        self.rows("seats", SEATS)
        return Browser(Wire(self.stack.site), self.rows("admin")["session"])

    def approve(self, applications: list[int]) -> Answer:
        """The admin's click on *Approve*, for one person or for a whole list."""
        chosen = {"application": applications, "action": "approve"}
        return self.admin.post("/staff/waitlist/decide/", **chosen).ok(302)

    @cached_property
    def _database(self) -> "psycopg.Connection[tuple[Any, ...]]":
        return psycopg.connect(self.stack.databases[0], autocommit=True)

    def until_made(self, owners: list[str], *, every: float) -> datetime:
        """When the last of their keys was there, by the rows; `every`: seconds between looks."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            row = self._database.execute(MADE, [owners]).fetchone()
            if row and row[0] == len(owners):
                return row[1]
            time.sleep(every)
        raise SystemExit(f"{row and row[0]} of {len(owners)} keys after {PATIENCE} s.")

    @cached_property
    def master_key(self) -> str:
        return self.stack.gateway_settings["LITELLM_MASTER_KEY"]

    def generate(self, gateway: Wire, **limits: int) -> tuple[str, float]:
        """LiteLLM's own /key/generate with what the product asks of it: the key, and seconds.

        Marked as nobody's, so that the reconciler leaves it alone.
        """
        new = NewKey.make()
        content = {
            "key": new.value,
            "key_alias": f"bench-{new.token[:24]}",
            "user_id": f"bench-{new.token[24:48]}",
            "rpm_limit": 100,
            "max_parallel_requests": 5,
            "allowed_routes": ALLOWED_ROUTES,
            "metadata": {"site": "bench"},
            **limits,
        }
        answer = gateway.post_json("/key/generate", key=self.master_key, content=content).ok()
        self._made.append(new.token)
        return new.value, answer.seconds

    @cached_property
    def _made(self) -> list[str]:
        return []

    def clean_up(self) -> None:
        """For a stack that lives on: its bench people and keys go."""
        gateway = Wire(self.stack.url("gateway"))
        for token in self._made:
            gateway.post_json("/key/delete", key=self.master_key, content={"keys": [token]}).ok()
        self.rows("forget")
