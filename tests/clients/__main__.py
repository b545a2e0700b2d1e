"""python -m tests.clients: each client once, as its page says; the versions that answered are
written into inference/docs/verified.json, which pages show. Ends with 1 if one failed."""

import argparse
import json
import time
from datetime import date
from pathlib import Path

import httpx

from inference.docs import verified
from tests.clients.catalogue import CLIENTS, Client
from tests.clients.running import Failed, Place, ask, install, set_up
from tests.stack import ROOT, Stack
from tests.visitor import Visitor


def main() -> int:
    options = _arguments()
    chosen = [c for c in CLIENTS if not options.only or {c.page, c.package} & set(options.only)]
    stack = Stack(options.state_dir / "stack")
    failed = 0
    stack.local("clean-data", "--yes")
    try:
        stack.start()
        key = Visitor(stack).become_member().create_key()
        for client in chosen:
            failed += not _try(client, stack, key, options.state_dir / "homes")
    finally:
        stack.stop()
    print(f"{len(chosen) - failed} of {len(chosen)} answered; see {verified.FILE}")
    return 1 if failed else 0


def _try(client: Client, stack: Stack, key: str, folder: Path) -> bool:
    began = time.monotonic()
    name = client.package.replace("/", "-").strip("@")
    values = {"KEY": key, "MODEL": "nan", "V1": f"{stack.api}/v1"}
    place = Place(folder=folder / f"{client.registry}-{name}", values=values)
    try:
        install(client, place.folder)
        page = httpx.get(f"{stack.site}/docs/examples/{client.page}/", timeout=30)
        set_up(client, place, page.raise_for_status().text)
        ask(client, place)
    except (Failed, httpx.HTTPError, OSError) as problem:
        print(f"FAILED  {client.package} {client.version}: {problem}", flush=True)
        return False
    _write(client)
    seconds = time.monotonic() - began
    print(f"ok      {client.package} {client.version} ({seconds:.0f} s)", flush=True)
    return True


def _write(client: Client) -> None:
    """In place of what was known of this package; others stay."""
    known = json.loads(verified.FILE.read_text())
    entries = [e for e in known.get(client.page, []) if e["package"] != client.package]
    entry = {"package": client.package, "version": client.version, "on": str(date.today())}
    known[client.page] = sorted([*entries, entry], key=lambda one: str(one["package"]))
    verified.FILE.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.clients")
    parser.add_argument("only", nargs="*", help="names of pages or packages; none: all")
    parser.add_argument("--state-dir", type=Path, default=ROOT / ".nan" / "clients")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
