"""python -m tests.clients: each client once, as its page says; the versions that answered are
written into inference/docs/verified.json, which pages show. Ends with 1 if one failed."""

import argparse
import json
import time
from collections.abc import Collection
from datetime import date
from pathlib import Path

import httpx

from tests.clients.catalogue import CLIENTS, Client
from tests.clients.relay import Relay, relayed
from tests.clients.running import Failed, Place, ask, install, set_up
from tests.stack import ROOT, Stack
from tests.visitor import Visitor

FILE = ROOT / "inference" / "docs" / "verified.json"
SHOWN = """
import sys
from inference.docs import pages, verified
print(verified.shown(pages.load("en")[sys.argv[1]]))
"""


def main() -> int:
    options = _arguments()
    chosen = [c for c in CLIENTS if not options.only or {c.page, c.package} & set(options.only)]
    folder = options.state_dir / "stack"
    failed = 0
    with relayed(lambda: _edge(folder)) as relay:
        stack = Stack(folder, extra={"API_URL": relay.url})
        stack.local("clean-data", "--yes")
        try:
            stack.start()
            key = Visitor(stack).become_member().create_key()
            for client in chosen:
                failed += not _try(client, stack, relay, key, options.state_dir / "homes")
        finally:
            stack.stop()
    print(f"{len(chosen) - failed} of {len(chosen)} answered; see {FILE}")
    return 1 if failed else 0


def _edge(folder: Path) -> str:
    """Where the API really is: pages have the relay's address, as the stack was told."""
    return f"http://127.0.0.1:{json.loads((folder / 'ports.json').read_text())['api']}"


def _try(client: Client, stack: Stack, relay: Relay, key: str, folder: Path) -> bool:
    began = time.monotonic()
    name = client.package.replace("/", "-").strip("@")
    place = Place(folder=folder / f"{client.registry}-{name}", key=key)
    try:
        install(client, place.folder)
        url = f"{stack.site}/docs/examples/{client.page}/"
        page = httpx.get(url, timeout=30, headers={"Accept-Language": "en"})
        shown = set_up(client, place, page.raise_for_status().text)
        relay.calls.clear()
        ask(client, place, shown)
    except (Failed, httpx.HTTPError, OSError) as problem:
        print(f"FAILED  {client.package} {client.version}: {problem}", flush=True)
        return False
    _write(client, relay.calls, stack.python(SHOWN, client.page).strip())
    seconds = time.monotonic() - began
    calls = ", ".join(sorted(relay.calls))
    print(f"ok      {client.package} {client.version} ({seconds:.0f} s): {calls}", flush=True)
    return True


def _write(client: Client, calls: Collection[str], shown: str) -> None:
    """In place of what was known of this package; others stay."""
    known = json.loads(FILE.read_text())
    entries = [e for e in known.get(client.page, []) if e["package"] != client.package]
    entry = {
        "package": client.package,
        "version": client.version,
        "on": str(date.today()),
        "calls": sorted(calls),
        "shown": shown,
    }
    known[client.page] = sorted([*entries, entry], key=lambda one: str(one["package"]))
    FILE.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.clients")
    parser.add_argument("only", nargs="*", help="names of pages or packages; none: all")
    parser.add_argument("--state-dir", type=Path, default=ROOT / ".nan" / "clients")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
