"""What each part is told, and what it is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nan.local import engines, parts, ports, secrets
from nan.local.config import MAX_CONNECTIONS, Stack
from nan.local.engines import EngineError
from nan.local.part import Part, all_needs, in_order, with_needs
from nan.local.workers import YIELDING

ENVIRON = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}


def stack_of(folder: Path, **environ: str) -> Stack:
    return Stack.load(state_dir=folder, ports=ports.USUAL, environ={**ENVIRON, **environ})


def by_name(stack: Stack) -> dict[str, Part]:
    return {part.name: part for part in parts.all_parts(stack)}


def holders(found: dict[str, Part], secret: str) -> set[str]:
    return {name for name, part in found.items() if secret in " ".join(part.env.values())}


def test_only_the_gateway_and_its_worker_hold_the_master_key(folder: Path) -> None:
    stack = stack_of(folder)
    found = by_name(stack)
    assert holders(found, stack.master_key) == {"gateway", "worker-gateway"}
    assert holders(found, stack.salt_key) == {"gateway"}
    users = {"gateway", "worker-fleet", "worker-gpu", "web"}  # the web hands it to new servers
    assert holders(found, stack.engine_api_key) == users
    assert holders(found, stack.secrets["postgres_litellm"]) == {"gateway"}
    assert holders(found, stack.secrets["postgres_superuser"]) == set()


def test_secrets_of_the_callers_environment_do_not_leak_either(folder: Path) -> None:
    stack = stack_of(folder, LITELLM_MASTER_KEY="sk-mine", LITELLM_SALT_KEY="sk-salt")
    found = by_name(stack)
    assert holders(found, "sk-mine") == {"gateway", "worker-gateway"}
    assert holders(found, "sk-salt") == {"gateway"}


def test_no_secret_is_an_argument(folder: Path) -> None:
    """Arguments are visible to everyone on the machine."""
    stack = stack_of(folder)
    arguments = " ".join(word for part in parts.all_parts(stack) for word in part.argv)
    assert [name for name, value in stack.secrets.items() if value in arguments] == []
    assert [name for name, value in stack.secrets.items() if value in repr(stack)] == []
    assert [name for name in secrets.MAKERS if stack.secrets[name] in repr(by_name(stack))] == []


def test_bytecode_is_written_whatever_the_caller_has_set(folder: Path) -> None:
    found = by_name(stack_of(folder))
    assert [n for n, part in found.items() if "PYTHONDONTWRITEBYTECODE" in part.env] == []


def test_the_pool_follows_the_environment(folder: Path) -> None:
    """As on a production host; an empty value is none."""
    given = {"POOL_QUEUE_SECONDS": "7", "POOL_BALANCE": "leastconn"}
    for values, expected in ((given, (7, "leastconn")), (dict.fromkeys(given, ""), (60, "hash"))):
        stack = stack_of(folder, **values)
        edge = by_name(stack)["edge"]
        assert edge.prepare is not None
        edge.prepare()
        written = (stack.edge_dir / "haproxy.cfg").read_text()
        assert f"timeout queue {expected[0]}s" in written
        assert f"balance {expected[1]}" in written


def test_what_is_given_from_outside_is_used_and_not_started(folder: Path) -> None:
    database, redis = "postgresql://me:pw@db.example:5432/nan", "rediss://:pw@redis.example:6380/0"
    stack = stack_of(folder, DATABASE_URL=database, REDIS_URL=redis)
    found = by_name(stack)
    assert {"postgres", "valkey"}.isdisjoint(found)
    assert found["web"].env["DATABASE_URL"] == database
    assert found["web"].env["REDIS_URL"] == redis
    gateway = found["gateway"].env
    assert gateway["DATABASE_URL"] == "postgresql://me:pw@db.example:5432/litellm"
    assert (gateway["REDIS_HOST"], gateway["REDIS_PORT"]) == ("redis.example", "6380")


def test_nothing_is_measured_while_parts_come_and_go(folder: Path) -> None:
    """The beat begins when all that it has others look at is there, and ends before they do: parts
    end in the order in which they need each other, backwards."""
    needs = all_needs(parts.all_parts(stack_of(folder)))["beat"]
    looked_at = {"edge", "gateway", "web", "postgres", "valkey"}
    assert looked_at | {f"worker-{name}" for name in ("default", "gateway", "fleet")} <= needs


def test_a_gateway_and_engines_of_ones_own(folder: Path) -> None:
    stack = stack_of(folder, GATEWAY_URL="http://10.0.0.5:4000", ENGINE="none")
    found = by_name(stack)
    assert {"gateway", "worker-gpu"}.isdisjoint(found)
    assert found["worker-gateway"].env["GATEWAY_URL"] == "http://10.0.0.5:4000"


def test_a_gpu_worker_knows_no_database_and_no_secret_of_the_site(folder: Path) -> None:
    stack = stack_of(folder, DATABASE_URL="postgresql://me:pw@db.example:5432/nan")
    env = by_name(stack)["worker-gpu"].env
    assert {"DATABASE_URL", "DJANGO_SECRET_KEY", "LITELLM_MASTER_KEY"}.isdisjoint(env)
    assert (env["NAN_ROLE"], env["REDIS_URL"]) == ("gpu", stack.redis_url)


def test_the_fleet_worker_gives_way_and_engines_do_not(folder: Path) -> None:
    """Engines would inherit it of the GPU worker."""
    argvs = {name: tuple(part.argv) for name, part in by_name(stack_of(folder)).items()}
    giving_way = {name for name, argv in argvs.items() if argv[: len(YIELDING)] == YIELDING}
    assert giving_way == {"worker-fleet"}
    asked = [*YIELDING, sys.executable, "-c", "import os; print(os.nice(0))"]
    assert int(subprocess.check_output(asked)) == os.nice(0) + 5


def test_the_web_takes_no_part_of_its_address_from_a_header(folder: Path) -> None:
    argv = by_name(stack_of(folder))["web"].argv
    assert argv[argv.index("--forwarder-headers") + 1] == ""


def test_the_pools_stay_below_max_connections(folder: Path) -> None:
    """P6: three of Postgres' connections are for its superuser."""
    found = by_name(stack_of(folder))
    held = sum(int(part.env.get("DB_POOL_SIZE", 0)) for part in found.values() if not part.job)
    web_again = int(found["web"].env["DB_POOL_SIZE"])
    assert f"--max_connections={MAX_CONNECTIONS}" in found["postgres"].argv
    assert held + web_again + 10 + 10 < MAX_CONNECTIONS - 3


def test_vllm_that_is_not_installed_names_the_remedy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EngineError, match="ENGINE=simulator or ENGINE=vllm"):
        parts.all_parts(stack_of(folder, ENGINE="llama"))
    monkeypatch.setattr(engines, "VLLM_HOME", folder / "nothing")
    with pytest.raises(EngineError, match=r"deploy/engine/install\.py"):
        parts.all_parts(stack_of(folder, ENGINE="vllm"))


def test_parts_come_with_what_they_need(folder: Path) -> None:
    chosen = with_needs(parts.all_parts(stack_of(folder)), ["worker-fleet"])
    assert [part.name for part in chosen] == ["postgres", "valkey", "migrate", "worker-fleet"]
    with pytest.raises(LookupError, match="no part is called mysql"):
        with_needs(parts.all_parts(stack_of(folder)), ["mysql"])


def test_postgres_stops_after_all_that_use_it(folder: Path) -> None:
    needs = all_needs(parts.all_parts(stack_of(folder)))
    users = {name for name, found in needs.items() if "postgres" in found}
    workers = {"worker-default", "worker-gateway", "worker-fleet"}
    assert users == {
        "migrate",
        "first-admin",
        "first-fleet",
        "gateway",
        "web",
        "edge",
        "beat",
        *workers,
    }


def test_parts_that_wait_for_each_other_are_refused() -> None:
    circle = [Part(name="a", argv=[], after=("b",)), Part(name="b", argv=[], after=("a",))]
    with pytest.raises(ValueError, match="a -> b -> a"):
        in_order(circle)
