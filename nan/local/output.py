"""What the parts print: prefixed on the terminal, plain in one log file per part."""

import re
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
PAINT = re.compile(r"\x1b\[[0-9;]*m")
KEPT_LOGS = 3
LONGEST_LINE = 64 * 1024


class Console:
    """One line at a time, so that parts don't cut into each other."""

    def __init__(self, *, names: Sequence[str], out: TextIO | None = None, quiet: bool = False):
        self.out = out or sys.stdout
        self.quiet = quiet
        self.width = max((len(name) for name in names), default=0)
        self.colour = self.out.isatty()
        self._colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}

    def line(self, name: str, text: str) -> None:
        """A part's own output; left out when quiet."""
        if not self.quiet:
            self._print(name, text)

    def say(self, name: str, text: str) -> None:
        """The supervisor's word on a part."""
        self._print(name, text, mark="*")

    def plain(self, text: str) -> None:
        """A closed terminal (SIGHUP comes with it) must not keep anyone from stopping."""
        try:
            print(text, file=self.out, flush=True)
        except OSError:
            self.quiet = True

    def _print(self, name: str, text: str, *, mark: str = "|") -> None:
        prefix = f"{name:<{self.width}} {mark} "
        if not self.colour:
            text = PAINT.sub("", text)
        else:
            prefix = f"\033[{self._colours.get(name, 37)}m{prefix}\033[0m"
        try:
            print(f"{prefix}{text}", file=self.out, flush=True)
        except OSError:
            self.quiet = True  # the terminal is gone; the logs go on


class PartLog:
    """A part's log file; a new one at every start of the stack, the last three are kept."""

    def __init__(self, file: Path):
        self.file = file
        self.tail: deque[str] = deque(maxlen=25)
        file.parent.mkdir(parents=True, exist_ok=True)
        for number in range(KEPT_LOGS - 1, 0, -1):
            older = _numbered(file, number)
            if older.exists():
                older.replace(_numbered(file, number + 1))
        if file.exists():
            file.replace(_numbered(file, 1))
        self._out = file.open("w", buffering=1, errors="replace")

    def write(self, text: str) -> None:
        plain = PAINT.sub("", text)
        self.tail.append(plain)
        self._out.write(plain + "\n")

    def close(self) -> None:
        self._out.close()


def _numbered(file: Path, number: int) -> Path:
    return file.with_name(f"{file.name}.{number}")
