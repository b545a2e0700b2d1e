"""Logs, metrics, rendering, TLS and reloads."""

from __future__ import annotations

import datetime
import http.client
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from nan.local import edge
from tests.edge.conftest import Scene, answer_ok
from tests.edge.running import free_port, running_edge, settings_for
from tests.fakes.raw_http import RawServer, get, post

LOG_KEYS = ["ts", "fe", "be", "srv", "m", "p", "st", "term", "t", "by", "q", "conn", "rc"]


def test_the_log_holds_no_query_no_header_and_no_token(tmp_path: Path) -> None:
    secret = "s3cretw0rd"
    with (
        RawServer(answer_ok) as upstream,
        running_edge(tmp_path, gateway=upstream.address, web=upstream.address) as running,
    ):
        headers = {"Authorization": f"Bearer sk-{secret}", "User-Agent": secret}
        post(running.api, f"/v1/messages?beta={secret}", secret.encode(), headers=headers)
        post(running.api, f"/v1/{secret}", headers=headers)
        post(running.api, f'/v1/"{secret}\\', headers=headers)
        get(running.site, f"/accounts/confirm-email/{secret}/?x={secret}", headers=headers)
        get(running.site, f'/{secret.upper()}"', headers=headers)
        lines = running.log()
        assert secret not in running.log_file.read_text().lower()
    # Sorted: two threads' lines may come in either order.
    assert sorted((line["fe"], line["m"], line["p"], line["st"]) for line in lines) == [
        ("api", "-", "-", 404),
        ("api", "-", "-", 404),
        ("api", "POST", "/v1/messages", 200),
        ("site", "GET", "-", 200),
        ("site", "GET", "/accounts", 200),
    ]
    assert list(lines[0]) == LOG_KEYS


def test_v8_ballots_leave_no_line_in_the_log(tmp_path: Path) -> None:
    """Lines of POSTs would count them; so would those of the page that follows, by their size."""
    with (
        RawServer(answer_ok) as upstream,
        running_edge(tmp_path, gateway=upstream.address, web=upstream.address) as running,
    ):
        assert post(running.site, "/vote/2026-Q4/", b"rank%3Akeep=1").status == 200
        for path in ("/vote/2026-Q4/", "/vote", "//vote/x/", "/%76ote/x/", "/vote/x/receipt/"):
            get(running.site, path)
        get(running.site, "/voted/")
        post(running.site, "/waitlist/", b"x=1")
        lines = running.log()
    assert sorted((line["m"], line["p"]) for line in lines) == [
        ("GET", "/voted"),
        ("POST", "/waitlist"),
    ]


def test_metrics_for_prometheus(scene: Scene) -> None:
    answer = get(scene.edge.ops, "/metrics")
    assert answer.status == 200
    assert b'haproxy_server_status{proxy="gateway",server="gateway",state="UP"} 1' in answer.body
    assert get(scene.edge.ops, "/").status == 404


def test_timeouts_of_streams_are_an_hour(tmp_path: Path) -> None:
    config = edge.render(settings_for(tmp_path))["haproxy.cfg"]
    assert config.count("timeout client 1h") == 2
    assert config.count("timeout server 1h") == 1 + edge.SLOTS + 1


def test_everything_inside_listens_where_it_is_told(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    config = edge.render(settings)["haproxy.cfg"]
    binds = [line.split()[1] for line in config.splitlines() if line.startswith("    bind ")]
    assert binds == [
        settings.site_bind,
        settings.api_bind,
        settings.pool_bind,
        settings.ops_bind,
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"gateway": "127.0.0.1"},
        {"gateway": "127.0.0.1:99999"},
        {"web": "127.0.0.1:1 check"},
        {"site_url": 'http://x" .. os.exit()'},
        {"queue_seconds": 0},
        {"balance": "random"},
        {"tls_cert": "/a b.pem"},
    ],
)
def test_settings_that_could_become_configuration_are_refused(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(edge.EdgeError):
        settings_for(tmp_path, **changes)


def test_a_folder_that_somebody_else_made_in_a_shared_one_is_refused(tmp_path: Path) -> None:
    elsewhere, shared = tmp_path / "elsewhere", tmp_path / "shared"
    elsewhere.mkdir()
    shared.mkdir()
    (shared / "edge").symlink_to(elsewhere)
    edge.write(settings_for(shared / "edge"))
    shared.chmod(0o1777)
    with pytest.raises(edge.EdgeError):
        edge.write(settings_for(shared / "edge"))


def test_production_renders_with_the_same_function_and_no_packages(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    environment = {
        "EDGE_RUN_DIR": str(tmp_path),
        "SITE_URL": settings.site_url,
        "API_URL": settings.api_url,
        "EDGE_SITE_BIND": settings.site_bind,
        "EDGE_API_BIND": settings.api_bind,
        "EDGE_POOL_BIND": settings.pool_bind,
        "EDGE_OPS_BIND": settings.ops_bind,
        "EDGE_WEB": settings.web,
        "EDGE_GATEWAY": settings.gateway,
        "HAPROXY_BINARY": str(edge.haproxy_binary()),
    }
    # -S: without site-packages, so the standard library has to do.
    program = [sys.executable, "-S", str(Path(edge.__file__))]
    said = subprocess.run([*program, "--check"], env=environment, capture_output=True, text=True)
    assert (said.returncode, said.stdout.splitlines()[0].split()[1:]) == (
        0,
        ["-W", "-S", f"{tmp_path}/master.sock,mode,600", "-f", f"{tmp_path}/haproxy.cfg"],
    )
    assert (tmp_path / "haproxy.cfg").read_text() == edge.render(settings)["haproxy.cfg"]
    del environment["SITE_URL"]
    said = subprocess.run(program, env=environment, capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (2, "edge: SITE_URL is not set.\n")


def self_signed(path: Path, *names: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    path.write_bytes(
        certificate.public_bytes(pem)
        + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


class NamedHTTPS(http.client.HTTPSConnection):
    """Connects to loopback, whatever name is asked for."""

    def connect(self) -> None:
        name, self.host = self.host, "127.0.0.1"
        http.client.HTTPConnection.connect(self)
        self.host = name
        self.sock = self._context.wrap_socket(self.sock, server_hostname=name)


def test_production_tls_on_one_address_for_both_names(tmp_path: Path) -> None:
    pem = tmp_path / "cert.pem"
    self_signed(pem, "nan.example", "api.nan.example")
    trust = ssl.create_default_context(cafile=str(pem))
    port, plain = free_port(), free_port()
    with (
        RawServer(answer_ok) as web,
        RawServer(answer_ok) as gateway,
        running_edge(
            tmp_path / "run",
            web=web.address,
            gateway=gateway.address,
            site_url="https://nan.example",
            api_url="https://api.nan.example",
            site_bind=f"127.0.0.1:{port}",
            api_bind=f"127.0.0.1:{port}",
            tls_cert=str(pem),
            redirect_bind=f"127.0.0.1:{plain}",
        ),
    ):
        site = NamedHTTPS("nan.example", port, context=trust, timeout=5)
        site.request("GET", "/key/", headers={"X-Forwarded-For": "6.6.6.6"})
        page = site.getresponse()
        assert (page.status, page.headers["strict-transport-security"]) == (200, "max-age=31536000")
        (seen,) = web.requests
        assert [
            seen.values(name)
            for name in ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host")
        ] == [["127.0.0.1"], ["https"], [f"nan.example:{port}"]]

        api = NamedHTTPS("api.nan.example", port, context=trust, timeout=5)
        api.request("POST", "/v1/chat/completions", b"{}")
        answer = api.getresponse()
        assert (answer.status, answer.read()) == (200, b'{"ok": true}')
        api.request("POST", "/key/generate", b"{}")
        refused = api.getresponse()
        assert (refused.status, refused.headers["strict-transport-security"]) == (
            404,
            "max-age=31536000",
        )
        assert len(gateway.requests) == 1

        moved = get(plain, "/key/?a=1", host="evil.example")
        assert (moved.status, moved.headers["location"]) == (301, "https://nan.example/key/?a=1")
        assert post(plain, "/v1/messages").status == 404
        site.close()
        api.close()


def test_a_reload_keeps_running_streams(tmp_path: Path) -> None:
    with (
        RawServer(lambda request, connection: slow_answer(connection)) as gateway,
        running_edge(tmp_path, gateway=gateway.address) as running,
    ):
        client = http.client.HTTPConnection("127.0.0.1", running.api, timeout=10)
        client.request("POST", "/v1/chat/completions", b"{}")
        response = client.getresponse()
        running.process.send_signal(signal.SIGUSR2)
        time.sleep(0.5)
        assert get(running.ops, "/metrics").status == 200
        assert response.read() == b"onetwo"
        client.close()


def test_a_reload_leaves_idle_clients_their_connections_for_a_while(tmp_path: Path) -> None:
    """Closing them all at once would meet requests that are on their way."""
    with (
        RawServer(answer_ok) as gateway,
        running_edge(tmp_path, gateway=gateway.address) as running,
    ):
        clients = [
            http.client.HTTPConnection("127.0.0.1", running.api, timeout=10) for _ in "x" * 20
        ]
        for client in clients:
            assert answered_on_the_same_connection(client) is not None
        running.process.send_signal(signal.SIGUSR2)
        time.sleep(0.5)
        kept = [answered_on_the_same_connection(client) for client in clients]
    assert kept.count(200) > 10  # each is closed at some moment within 30 s


def answered_on_the_same_connection(client: http.client.HTTPConnection) -> int | None:
    client.auto_open = 1 if client.sock is None else 0
    try:
        client.request("POST", "/v1/chat/completions", b"{}")
        response = client.getresponse()
        response.read()
    except (http.client.HTTPException, OSError):
        return None
    return response.status


def slow_answer(connection: object) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\none")
    time.sleep(1)
    connection.send(b"two")
