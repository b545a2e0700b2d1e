import json
import socket
from pathlib import Path

from nan.local import ports


def listen(port: int = 0) -> socket.socket:
    server = socket.socket()
    server.bind((ports.HOST, port))
    server.listen()
    return server


def test_every_name_gets_a_port_of_its_own(tmp_path: Path) -> None:
    chosen = ports.choose(file=tmp_path / "ports.json", free=True)
    assert set(chosen) == set(ports.USUAL)
    assert len(set(chosen.values())) == len(ports.USUAL)
    assert set(chosen.values()).isdisjoint(ports.USUAL.values())


def test_the_second_run_uses_the_same_ports(tmp_path: Path) -> None:
    first = ports.choose(file=tmp_path / "ports.json", free=True)
    assert ports.choose(file=tmp_path / "ports.json", free=True) == first


def test_a_taken_port_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    first = ports.choose(file=tmp_path / "ports.json", free=True)
    with listen(first["site"]):
        second = ports.choose(file=tmp_path / "ports.json", free=True)
    assert second["site"] != first["site"]
    assert {**second, "site": 0} == {**first, "site": 0}


def test_a_broken_file_is_no_reason_to_fail(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"site": "eighty"}', '{"site": 99999999}'):
        (tmp_path / "ports.json").write_text(text)
        chosen = ports.choose(file=tmp_path / "ports.json", free=True)
        assert json.loads((tmp_path / "ports.json").read_text()) == chosen


def test_is_free_tells_a_listener() -> None:
    with listen() as server:
        port = server.getsockname()[1]
        assert not ports.is_free(port)
    assert ports.is_free(port)
