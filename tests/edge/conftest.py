from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.edge.running import RunningEdge, running_edge
from tests.fakes.raw_http import Connection, RawServer, Request, Script


def answer_ok(request: Request, connection: Connection) -> None:
    connection.answer(200, {"ok": True}, {"content-type": "application/json"})


@dataclass
class Scene:
    """One edge for many tests; each test sets what the upstreams do."""

    edge: RunningEdge
    gateway: RawServer
    web: RawServer
    engine: RawServer
    scripts: dict[str, Script] = field(default_factory=dict)


@pytest.fixture(scope="session")
def shared_scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scripts: dict[str, Script] = {}

    def scripted(name: str) -> Script:
        return lambda request, connection: scripts[name](request, connection)

    run_dir: Path = tmp_path_factory.mktemp("edge")
    with (
        RawServer(scripted("gateway")) as gateway,
        RawServer(scripted("web")) as web,
        RawServer(scripted("engine")) as engine,
        running_edge(
            run_dir,
            gateway=gateway.address,
            web=web.address,
            error_body_timeout="500ms",
        ) as edge,
    ):
        edge.serve(engine)
        yield Scene(edge, gateway, web, engine, scripts)


@pytest.fixture
def scene(shared_scene: Scene) -> Scene:
    for name in ("gateway", "web", "engine"):
        shared_scene.scripts[name] = answer_ok
        getattr(shared_scene, name).requests.clear()
    return shared_scene
