"""A gateway that is down, slow, lying or losing its answers: one key or none, never an orphan."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.utils import timezone
from nacl.public import PrivateKey
from redis.backoff import NoBackoff
from redis.retry import Retry

from inference import keys, provisioning, reveal
from inference.gateway import Gateway
from inference.limits import Limits
from inference.models import Key, KeyHolder
from inference.provisioning import GIVE_UP
from members.models import User
from tests.fakes.gateway import MASTER_KEY, FakeGateway, Manner
from tests.inference.conftest import advance, live
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db
Maker = Callable[[User], Key]


def only_key_works(user: User, pair: PrivateKey, fake: FakeGateway) -> None:
    """One live key on both sides, and it is the one that her browser can open."""
    key = Key.objects.of(user).live().get()
    assert key.state == "active"
    assert [theirs["token"] for theirs in fake.of(user.public_id)] == [key.token]
    value = reveal.take(key.id, key.token, pair)
    assert value is not None
    assert fake.admits(value)
    assert Limits(*fake.peaks[str(user.public_id)]).within(Limits(100, 5))


DISHONEST = (Manner.REFUSE, Manner.LIE, Manner.MIX_UP)
TROUBLES = [manner for manner in Manner if manner not in DISHONEST]


@pytest.mark.parametrize("manner", TROUBLES)
def test_k5_no_key_is_shown_until_it_works(
    member: User, client_of_fake: object, pair: PrivateKey, fake: FakeGateway, manner: Manner
) -> None:
    fake.misbehave("/key/generate", manner)
    key = keys.request_key(user=member, public_key=bytes(pair.public_key))
    provisioning.advance(member.public_id)
    key.refresh_from_db()
    assert key.state == "requested"
    assert reveal.waiting(key.id, key.token) is False
    advance(member)
    only_key_works(member, pair, fake)


def test_k5_five_hundred_then_timeout_then_success(
    member: User, client_of_fake: object, pair: PrivateKey, fake: FakeGateway
) -> None:
    fake.misbehave("/key/generate", Manner.FAIL, Manner.HANG, Manner.ACT_THEN_FAIL)
    keys.request_key(user=member, public_key=bytes(pair.public_key))
    advance(member)
    only_key_works(member, pair, fake)


def test_k5_after_trouble_a_key_has_to_prove_itself(
    member: User, client_of_fake: object, pair: PrivateKey, fake: FakeGateway
) -> None:
    """The gateway says that it made the key, and did not."""
    fake.misbehave("/key/generate", Manner.FAIL, Manner.LIE)
    key = keys.request_key(user=member, public_key=bytes(pair.public_key))
    for _ in range(2):
        provisioning.advance(member.public_id)
        key.refresh_from_db()
        assert key.state == "requested"
    advance(member)
    only_key_works(member, pair, fake)


def test_a_late_creation_is_removed_again(
    member: User, client_of_fake: object, pair: PrivateKey, fake: FakeGateway
) -> None:
    """The first call acts after the second has made the key: two under one alias for a while."""
    fake.race_seconds = 1.0
    key = keys.request_key(user=member, public_key=bytes(pair.public_key))
    provisioning.advance(member.public_id)
    fake.race_seconds = 0
    advance(member)
    only_key_works(member, pair, fake)
    wait_until(lambda: len(fake.of(member.public_id)) == 2, seconds=5, every=0.02)
    Key.objects.filter(pk=key.pk).update(doubtful_until=timezone.now())
    advance(member)
    key.refresh_from_db()
    assert [theirs["token"] for theirs in fake.of(member.public_id)] == [key.token]


def test_a_refusal_ends_the_attempt_and_can_be_tried_again(
    member: User, client_of_fake: object, pair: PrivateKey, fake: FakeGateway
) -> None:
    fake.misbehave("/key/generate", Manner.REFUSE)
    key = keys.request_key(user=member, public_key=bytes(pair.public_key))
    advance(member)
    key.refresh_from_db()
    assert (key.state, key.error_code) == ("failed", "refused")
    again = keys.request_key(user=member, public_key=bytes(pair.public_key))
    assert again.pk != key.pk
    advance(member)
    only_key_works(member, pair, fake)


def test_nothing_is_stuck_in_requested(
    member: User, client_of_fake: object, pair: PrivateKey, fake: FakeGateway
) -> None:
    """A gateway that stays away: the request fails in words, before the cookie would be gone."""
    key = keys.request_key(user=member, public_key=bytes(pair.public_key))
    fake.always["/key/generate"] = Manner.ACT_THEN_FAIL
    provisioning.advance(member.public_id)
    Key.objects.filter(pk=key.pk).update(requested_at=timezone.now() - GIVE_UP - timedelta(1))
    provisioning.advance(member.public_id)
    key.refresh_from_db()
    assert (key.state, key.error_code) == ("failed", "server_error")
    fake.always.clear()
    advance(member)
    assert fake.of(member.public_id) == []
    keys.request_key(user=member, public_key=bytes(pair.public_key))
    advance(member)
    only_key_works(member, pair, fake)


@pytest.mark.parametrize("manner", TROUBLES)
@pytest.mark.parametrize("path", ["/key/block", "/key/delete"])
def test_k7_a_revocation_gets_through(
    member: User, make_key: Maker, fake: FakeGateway, manner: Manner, path: str
) -> None:
    make_key(member)
    fake.misbehave(path, manner, manner)
    keys.revoke(user=member, actor=member)
    advance(member)
    assert (live(member), fake.keys) == ([], {})


@pytest.mark.parametrize("manner", TROUBLES)
@pytest.mark.parametrize("path", ["/key/update", "/key/generate", "/key/list", "/key/delete"])
def test_a_rotation_gets_through_within_the_limits(
    member: User, make_key: Maker, pair: PrivateKey, fake: FakeGateway, manner: Manner, path: str
) -> None:
    old = make_key(member)
    fake.misbehave(path, manner, manner)
    keys.rotate(user=member, public_key=bytes(pair.public_key), actor=member)
    advance(member)
    assert live(member) == [("active", 20, 1), ("active", 80, 4)]
    Key.objects.filter(pk=old.pk).update(remove_at=timezone.now())
    fake.misbehave(path, manner, manner)
    advance(member)
    only_key_works(member, pair, fake)
    assert live(member) == [("active", 100, 5)]


def test_a_pause_whose_answer_was_lost_and_then_taken_back(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    """The row says active, the gateway has it blocked, and she has changed her mind."""
    make_key(member)
    fake.misbehave("/key/block", Manner.ACT_THEN_FAIL)
    keys.pause(user=member, actor=member)
    provisioning.advance(member.public_id)
    keys.resume(user=member, actor=member)
    provisioning.advance(member.public_id)
    assert live(member) == [("active", 100, 5)]
    assert len(fake.working(member.public_id)) == 1


def test_the_gateway_was_down_at_that_moment(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    """The screen says pending, and it takes effect once the gateway is back."""
    make_key(member)
    fake.stop()
    keys.hold(user=member, actor=None, reason="abuse")
    provisioning.advance(member.public_id)
    assert keys.pending_at_gateway(member) is True
    holder = KeyHolder.objects.get(pk=member.public_id)
    assert (holder.error_code, holder.attempts) == ("unreachable", 1)
    fake.start()
    KeyHolder.objects.update(due_at=timezone.now())
    provisioning.advance_due()
    assert keys.pending_at_gateway(member) is False
    assert fake.working(member.public_id) == []


def test_waits_grow_to_a_quarter_of_a_minute(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    make_key(member)
    fake.stop()
    keys.pause(user=member, actor=member)
    waits = []
    for _ in range(8):
        provisioning.advance(member.public_id)
        due = KeyHolder.objects.get(pk=member.public_id).due_at
        waits.append(round((due - timezone.now()).total_seconds()))
    assert waits == [1, 2, 4, 8, 15, 15, 15, 15]


def test_a_key_that_the_gateway_lost_fails_in_words(
    member: User, make_key: Maker, pair: PrivateKey, fake: FakeGateway
) -> None:
    key = make_key(member)
    fake.keys.clear()
    keys.pause(user=member, actor=member)
    advance(member)
    key.refresh_from_db()
    assert (key.state, key.error_code) == ("failed", "lost")
    keys.request_key(user=member, public_key=bytes(pair.public_key))
    advance(member)
    only_key_works(member, pair, fake)


def test_redis_away_between_making_and_handing_over(
    member: User,
    client_of_fake: object,
    pair: PrivateKey,
    fake: FakeGateway,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dead = redis.Redis(port=1, retry=Retry(NoBackoff(), 0))
    with monkeypatch.context() as patched:
        patched.setattr(reveal, "_redis", lambda: dead)
        key = keys.request_key(user=member, public_key=bytes(pair.public_key))
        provisioning.advance(member.public_id)
        key.refresh_from_db()
        assert key.state == "requested"
        assert KeyHolder.objects.get().error_code == "reveal_unavailable"
    advance(member)
    only_key_works(member, pair, fake)


def test_a_dead_workers_lease_runs_out(
    member: User, client_of_fake: object, pair: PrivateKey, fake: FakeGateway
) -> None:
    """It died after the gateway had made the key and before that was written."""
    key = keys.request_key(user=member, public_key=bytes(pair.public_key))

    class Killed(BaseException):
        pass

    def die(*_args: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reveal, "leave", die)
        with pytest.raises(Killed):
            provisioning.advance(member.public_id)
    key.refresh_from_db()
    assert (key.state, len(fake.keys)) == ("requested", 1)
    assert provisioning.advance(member.public_id) is False
    KeyHolder.objects.update(lease_until=timezone.now())
    assert provisioning.advance(member.public_id) is True
    only_key_works(member, pair, fake)


def test_what_a_dead_worker_did_is_looked_at(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    """It died after the gateway had unblocked the key; then she paused again."""
    make_key(member)
    keys.pause(user=member, actor=member)
    advance(member)
    keys.resume(user=member, actor=member)

    class Dying(Gateway):
        def unblock(self, token: str) -> None:
            super().unblock(token)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        provisioning.advance(member.public_id, client=Dying(fake.url, MASTER_KEY, site="x"))
    keys.pause(user=member, actor=member)
    assert (live(member), len(fake.working(member.public_id))) == ([("blocked", 100, 5)], 1)
    KeyHolder.objects.update(lease_until=timezone.now())
    provisioning.advance(member.public_id)
    assert (live(member), fake.working(member.public_id)) == ([("blocked", 100, 5)], [])


def test_who_lost_the_lease_takes_back_what_it_made(
    member: User, client_of_fake: object, pair: PrivateKey, fake: FakeGateway
) -> None:
    """A worker that was stopped in the middle for longer than its lease."""
    keys.request_key(user=member, public_key=bytes(pair.public_key))
    real = reveal.leave

    def overtaken(*args: Any) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(reveal, "leave", real)
            KeyHolder.objects.update(lease_until=timezone.now())
            provisioning.advance(member.public_id)
        real(*args)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reveal, "leave", overtaken)
        provisioning.advance(member.public_id)
    advance(member)
    only_key_works(member, pair, fake)


def test_a_stopped_worker_wakes_up_after_the_key_is_gone(
    member: User, client_of_fake: Gateway, fake: FakeGateway
) -> None:
    """Stopped just before its call; meanwhile another worker has removed the key for good."""
    keys.request_key(user=member, public_key=b"2" * 32)

    class Stopped(Gateway):
        def create(self, **creation: Any) -> None:
            KeyHolder.objects.update(lease_until=timezone.now())
            keys.revoke(user=member, actor=member)
            provisioning.advance(member.public_id)
            assert live(member) == []
            super().create(**creation)

    late = Stopped(fake.url, MASTER_KEY, site="x")
    provisioning.advance(member.public_id, client=late)
    assert fake.paths().count("/key/generate") == 1
    assert fake.keys == {}
