"""What runs: every part of the product as a Part, built from a Stack."""

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from . import edge as haproxy
from . import engines, environment, postgres, ready, valkey
from .config import HOST, ROOT, WEB_THREADS, WEB_WORKERS, Stack
from .part import Part
from .workers import fresh, worker

PYTHON = sys.executable
GATEWAY_SOURCE = ROOT / "deploy" / "gateway"
GATEWAY_HOME = ROOT / ".nan" / "gateway"


def all_parts(stack: Stack) -> list[Part]:
    """Everything that this run needs, in the order of the banner; external ones are left out."""
    optional = (
        (stack.embeds_postgres, database),
        (stack.embeds_valkey, queue),
        (stack.embeds_gateway, gateway),
        (engines.kind(stack) != "none", engines.gpu_worker),
    )
    always = (migrate, static_files, web, edge, beat)
    workers = (
        worker(stack, "default", threads=4, env=environment.default_worker(stack)),
        worker(stack, "gateway", threads=8, env=environment.gateway_worker(stack)),
        worker(stack, "fleet", threads=6, env=environment.fleet_worker(stack), yields=True),
    )
    chosen = [build(stack) for wanted, build in optional if wanted]
    firsts = (first_admin(stack), engines.first_fleet(stack))
    return [*chosen, *(build(stack) for build in always), *workers, *firsts]


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


def gateway(stack: Stack) -> Part:
    """Migrates its own database first. Slow to end on purpose: calls in flight finish."""
    config = stack.state_dir / "gateway.json"
    port = stack.ports["gateway"]
    return Part(
        name="gateway",
        argv=[
            *(PYTHON, str(GATEWAY_SOURCE / "run.py"), "--home", str(GATEWAY_HOME)),
            *("--config", str(config), "--host", HOST, "--port", str(port), "--first-instance"),
        ],
        env=environment.gateway(stack),
        after=("postgres", "valkey"),
        prepare=partial(_configure_gateway, stack, config),
        ready=partial(ready.contains, f"{stack.gateway_url}/health/readiness", b"connected"),
        ready_seconds=180,
        stop_seconds=20,
        port=port,
        url=stack.gateway_url,
        remedy="`make setup` installs the gateway again where something of it is missing.",
    )


def _configure_gateway(stack: Stack, target: Path) -> None:
    """Without models: the gateway worker publishes those that the fleet serves."""
    script = [PYTHON, str(GATEWAY_SOURCE / "config.py")]
    subprocess.run(
        [*script, "--models", "-", "--output", str(target)],
        input="[]",
        text=True,
        check=True,
        env=environment.bare(stack),
    )


def edge(stack: Stack) -> Part:
    """HAProxy in front of it all; last to start, so first to stop."""
    bind = {name: f"{HOST}:{stack.ports[name]}" for name in ("site", "api", "pool", "ops", "web")}
    settings = haproxy.EdgeSettings(
        run_dir=stack.edge_dir,
        site_url=stack.site_url,
        api_url=stack.api_url,
        site_bind=bind["site"],
        api_bind=bind["api"],
        pool_bind=bind["pool"],
        ops_bind=bind["ops"],
        web=bind["web"],
        gateway=_address(stack.gateway_url),
        **haproxy.pool_choices(stack.environ),
    )
    return Part(
        name="edge",
        argv=haproxy.command(settings.run_dir / "haproxy.cfg"),
        env=environment.bare(stack),
        # Begun before the gateway is ready, it would go on taking it for down a moment longer.
        after=("web", "gateway"),
        prepare=partial(haproxy.write, settings),
        ready=partial(ready.http, f"http://{bind['ops']}/metrics"),
        port=stack.ports["site"],
        url=stack.site_url,
    )


def _address(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


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
            *("--graceful-timeout", "8", "--forwarded-allow-ips", HOST, "--no-control-socket"),
            # By itself it would take SCRIPT_NAME, a part of the address, from a header.
            *("--forwarder-headers", ""),
            *("--worker-tmp-dir", _memory_dir()),
        ],
        env=environment.web(stack),
        after=("migrate", "static-files", "valkey"),
        ready=partial(ready.http, f"http://{HOST}:{port}/readyz"),
        cwd=ROOT,
        port=port,
        url=f"http://{HOST}:{port}",
    )


def _memory_dir() -> str:
    """Gunicorn's heartbeat files; on a slow disk they make it kill healthy workers."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else "/tmp"


def beat(stack: Stack) -> Part:
    """The last to begin and the first to end: nothing is measured, and nobody alerted, while parts
    come and go because they are meant to."""
    schedule = stack.state_dir / "run" / "beat-schedule"
    began = schedule.with_name("beat.began")
    return Part(
        name="beat",
        argv=[
            *(PYTHON, "-m", "celery", "-A", "nan", "beat", "-l", "WARNING"),
            *("--schedule", str(schedule), "--pidfile", ""),
        ],
        env=environment.app(stack, part="beat"),
        after=("edge", "worker-default", "worker-gateway", "worker-fleet"),
        # Beat stores its schedule as soon as it runs; the old one says what is overdue.
        prepare=fresh(began, touch=True),
        ready=partial(ready.written_since, began, schedule),
        cwd=ROOT,
    )
