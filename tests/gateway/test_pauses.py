"""What starting LiteLLM leaves behind is not searched for garbage again and again."""

import subprocess
import sys
from pathlib import Path

CALLBACKS = Path(__file__).parents[2] / "deploy/gateway/callbacks"
PROGRAM = """
import asyncio, gc
from nan_pauses import Settled

async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        await send({"type": "lifespan.startup.complete"})
    else:
        await send({"type": "http.response.start"})

async def told(message):
    print(message["type"], gc.get_freeze_count() > 1000)

async def main():
    app = Settled(application)
    await app({"type": "http"}, None, told)
    await app({"type": "lifespan"}, None, told)

asyncio.run(main())
"""


def test_what_there_is_once_it_has_started_is_out_of_the_collectors_sight() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": str(CALLBACKS)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines() == [
        "http.response.start False",
        "lifespan.startup.complete True",
    ]
