"""What runs: every part of the product as a Part, built from a Stack."""

import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from . import environment, postgres, ready, valkey
from .config import HOST, ROOT, WEB_THREADS, WEB_WORKERS, Stack
from .engines import engine
from .part import Part

PYTHON = sys.executable


def all_parts(stack: Stack) -> list[Part]:
    """Everything that this run needs, in the order of the banner; external ones are left out."""
    optional = (
        (stack.embeds_postgres, database),
        (stack.embeds_valkey, queue),
        (stack.embeds_engine, engine),
        (stack.embeds_gateway, gateway_schema),
        (stack.embeds_gateway, gateway),
    )
    always = (migrate, static_files, web, beat)
    workers = (
        worker(stack, "default", threads=4, env=environment.app(stack, part="worker-default")),
        worker(stack, "gateway", threads=8, env=environment.gateway_worker(stack)),
        worker(stack, "fleet", threads=2, env=environment.app(stack, part="worker-fleet")),
    )
    chosen = [build(stack) for wanted, build in optional if wanted]
    return [*chosen, *(build(stack) for build in always), *workers, first_admin(stack)]


def database(stack: Stack) -> Part:
    cluster = stack.cluster()
    return Part(
        name="postgres",
        argv=cluster.argv(),
        env=environment.bare(stack),
        prepare=partial(postgres.initialise, cluster),
        ready=partial(postgres.ensure_databases, cluster),
        stop_signal=signal.SIGINT,  # fast: ends sessions, keeps what was committed
        stop_seconds=15,
        user=cluster.user,
        cwd=cluster.data.parent,
        port=cluster.port,
        remedy="If its data was damaged, `make clean-data` starts afresh.",
    )


def queue(stack: Stack) -> Part:
    folder = stack.state_dir / "valkey"
    config = partial(
        valkey.configure,
        folder=folder,
        port=stack.ports["valkey"],
        password=stack.secrets["valkey"],
    )
    return Part(
        name="valkey",
        argv=[str(valkey.binary()), str(folder / "valkey.conf")],
        env=environment.bare(stack),
        prepare=config,
        ready=partial(ready.valkey, stack.redis_url),
        port=stack.ports["valkey"],
    )


def gateway_schema(stack: Stack) -> Part:
    return Part(
        name="gateway-schema",
        argv=[*_gateway_script("migrate.py"), *_gateway_home()],
        env=environment.gateway(stack),
        after=("postgres",),
        job=True,
        remedy="`make setup` installs the gateway; LITELLM_DATABASE_URL must name a database "
        "that exists.",
    )


def gateway(stack: Stack) -> Part:
    """Slow to end on purpose: SIGTERM lets the calls in flight finish."""
    port = stack.ports["gateway"]
    config = stack.state_dir / "gateway.yaml"
    return Part(
        name="gateway",
        argv=[
            *_gateway_script("run.py"),
            *_gateway_home(),
            *("--config", str(config), "--host", HOST, "--port", str(port)),
        ],
        env=environment.gateway(stack),
        after=("gateway-schema", "valkey"),
        ready=partial(ready.http, f"{stack.gateway_url}/health/liveliness"),
        ready_seconds=120,
        stop_seconds=20,
        port=port,
        url=stack.gateway_url,
    )


def _gateway_script(name: str) -> list[str]:
    return [PYTHON, str(ROOT / "deploy" / "gateway" / name)]


def _gateway_home() -> list[str]:
    return ["--home", str(ROOT / ".nan" / "gateway")]


def migrate(stack: Stack) -> Part:
    return _manage(stack, "migrate", "migrate", "--no-input", after=("postgres",))


def static_files(stack: Stack) -> Part:
    return _manage(stack, "static-files", "collectstatic", "--no-input", "-v", "0")


def first_admin(stack: Stack) -> Part:
    return _manage(stack, "first-admin", "first_admin", after=("migrate",), private_output=True)


def _manage(
    stack: Stack,
    name: str,
    *arguments: str,
    after: tuple[str, ...] = (),
    private_output: bool = False,
) -> Part:
    return Part(
        name=name,
        argv=[PYTHON, "manage.py", *arguments],
        env=environment.app(stack),
        after=after,
        job=True,
        private_output=private_output,
        cwd=ROOT,
    )


def web(stack: Stack) -> Part:
    """No access log: addresses carry tokens, and the edge counts requests already."""
    port = stack.ports["web"]
    return Part(
        name="web",
        argv=[
            *(PYTHON, "-m", "gunicorn", "nan.wsgi:application"),
            *("--bind", f"{HOST}:{port}", "--worker-class", "gthread"),
            *("--workers", str(WEB_WORKERS), "--threads", str(WEB_THREADS)),
            *("--graceful-timeout", "8", "--forwarded-allow-ips", HOST),
            *("--worker-tmp-dir", _memory_dir()),
        ],
        env=environment.app(stack, part="web"),
        after=("migrate", "static-files", "valkey"),
        ready=partial(ready.http, f"http://{HOST}:{port}/readyz"),
        cwd=ROOT,
        port=port,
        url=f"http://{HOST}:{port}",
    )


def _memory_dir() -> str:
    """Gunicorn's heartbeat files; on a slow disk they make it kill healthy workers."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else "/tmp"


def worker(stack: Stack, queue_name: str, *, threads: int, env: dict[str, str]) -> Part:
    """Without mingle and gossip, which wait for other workers at the start."""
    name = f"worker-{queue_name}"
    note = stack.state_dir / "run" / f"{name}.ready"
    return Part(
        name=name,
        argv=[
            *(PYTHON, "-m", "celery", "-A", "nan", "worker", "-Q", queue_name),
            *("-P", "threads", "-c", str(threads), "-n", f"{queue_name}@%h", "-l", "INFO"),
            *("-I", "nan.local.announce", "--without-mingle", "--without-gossip"),
        ],
        env={**env, "NAN_READY_FILE": str(note)},
        after=("migrate", "valkey"),
        prepare=_fresh(note),
        ready=partial(ready.written, note),
        stop_seconds=35,  # no task of ours runs longer than 30 s
        cwd=ROOT,
    )


def beat(stack: Stack) -> Part:
    schedule = stack.state_dir / "run" / "beat-schedule"
    return Part(
        name="beat",
        argv=[
            *(PYTHON, "-m", "celery", "-A", "nan", "beat", "-l", "INFO"),
            *("--schedule", str(schedule), "--pidfile", ""),
        ],
        env=environment.app(stack, part="beat"),
        after=("migrate", "valkey"),
        # Beat writes its schedule once it has read the settings; a stale one holds nothing we need.
        prepare=_fresh(schedule),
        ready=partial(ready.written, schedule),
        cwd=ROOT,
    )


def _fresh(file: Path) -> Callable[[], None]:
    def remove() -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)

    return remove

