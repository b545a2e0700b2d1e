"""The real worker process, killed and doubled, and what it leaves behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone
from nacl.public import PrivateKey

from inference import keys, reveal, tasks
from inference.models import Key, KeyHolder
from members.models import User
from tests import waiting
from tests.fakes.gateway import MASTER_KEY, FakeGateway, Manner
from tests.inference.conftest import live
from tests.people import person
from tests.secrets_search import find_everywhere

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = [sys.executable, "-m", "celery", "-A", "nan", "worker", "-Q", "gateway"]
COMMAND += ["-P", "threads", "-c", "8", "--without-gossip", "--without-mingle", "-l", "DEBUG"]

Start = Callable[[], "subprocess.Popen[bytes]"]


def database_url() -> str:
    values = connection.settings_dict
    password = f":{values['PASSWORD']}" if values["PASSWORD"] else ""
    place = f"{values['HOST']}:{values['PORT']}/{values['NAME']}"
    return f"postgresql://{values['USER']}{password}@{place}"


@pytest.fixture
def start(fake: FakeGateway, tmp_path: Path) -> Iterator[Start]:
    """Starts worker processes; ends those that are left."""
    started: list[subprocess.Popen[bytes]] = []
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "DB_POOL_SIZE": "10",
        "GATEWAY_URL": fake.url,
        "LITELLM_MASTER_KEY": MASTER_KEY,
        "LOG_LEVEL": "DEBUG",
    }

    def run() -> "subprocess.Popen[bytes]":
        log = (tmp_path / f"worker-{len(started)}.log").open("wb")
        process = subprocess.Popen(
            COMMAND, env=environment, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.terminate()
    for process in started:
        process.wait(20)


wait_until = partial(waiting.wait_until, seconds=30, every=0.05)


def beat() -> None:
    """What the beat does every five seconds."""
    tasks.gateway_advance_keys.apply_async()


def all_made() -> bool:
    """Looked at once a second, and with a beat each time, as the product has."""
    beat()
    time.sleep(1)
    return Key.objects.filter(state="active").count() == 40


def test_two_workers_make_each_key_once(start: Start, fake: FakeGateway) -> None:
    """K12: none stuck."""
    start(), start()
    people = [person(f"p{number}") for number in range(40)]
    for user in people:
        keys.request_key(user=user, public_key=b"1" * 32)
        beat()
    wait_until(all_made)
    assert sorted(fake.keys) == sorted(Key.objects.values_list("token", flat=True))
    assert fake.paths().count("/key/generate") == 40


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_worker_killed_at_any_moment_leaves_one_key(
    start: Start, fake: FakeGateway, member: User, pair: PrivateKey, moment: str
) -> None:
    """Killed while the gateway is about to act, and while it has acted but not answered."""
    first = start()
    fake.hang_seconds = 2
    if moment == "before":
        fake.misbehave("/key/generate", Manner.HANG)
    else:
        fake.race_seconds = 2
    key = keys.request_key(user=member, public_key=bytes(pair.public_key))
    wait_until(lambda: "/key/generate" in fake.paths())
    first.send_signal(signal.SIGKILL)
    first.wait()
    time.sleep(2.2)
    fake.race_seconds = 0
    key.refresh_from_db()
    assert (key.state, len(fake.keys)) == ("requested", int(moment == "after"))
    # Forty seconds later: the dead worker's lease has run out.
    KeyHolder.objects.update(lease_until=timezone.now(), due_at=timezone.now())
    start()
    beat()
    wait_until(lambda: live(member) == [("active", 100, 5)])
    key.refresh_from_db()
    assert list(fake.keys) == [key.token]
    value = reveal.take(key.id, key.token, pair)
    assert value is not None
    assert fake.admits(value)


def test_no_plaintext_anywhere(
    start: Start, fake: FakeGateway, member: User, pair: PrivateKey, tmp_path: Path
) -> None:
    """After a create, a rotation, and a forced failure, while the sealed keys wait in Redis."""
    start()
    public_key = bytes(pair.public_key)
    fake.misbehave("/key/generate", Manner.ACT_THEN_FAIL, Manner.GARBAGE)
    keys.request_key(user=member, public_key=public_key)
    wait_until(lambda: _after_a_beat(member) == [("active", 100, 5)])
    keys.rotate(user=member, public_key=public_key, actor=member)
    wait_until(lambda: _after_a_beat(member) == [("active", 20, 1), ("active", 80, 4)])
    other = person("Pia")
    fake.misbehave("/key/generate", Manner.REFUSE)
    keys.request_key(user=other, public_key=public_key)
    wait_until(lambda: [state for state, *_ in _after_a_beat(other)] == ["failed"])
    values = [call.body["key"] for call in fake.calls if call.path == "/key/generate"]
    assert len(values) == 5
    assert (tmp_path / "worker-0.log").stat().st_size > 1000
    for secret in [*values, MASTER_KEY]:
        found = find_everywhere(
            secret,
            databases=[database_url()],
            redis_url=settings.CACHES["default"]["LOCATION"].rsplit("/", 1)[0],
            folders=[tmp_path],
        )
        assert found == []


def _after_a_beat(user: User) -> list[tuple[str, int, int]]:
    KeyHolder.objects.exclude(due_at=None).update(due_at=timezone.now())
    beat()
    time.sleep(0.3)
    return live(user)
