"""Many at once, with real threads on a real Postgres."""

import threading
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from django.db import transaction
from django.utils import timezone
from nacl.public import PrivateKey

from inference import keys, provisioning, reveal, tasks
from inference.claims import BATCH
from inference.models import Key, KeyHolder
from members.models import User
from nan.celery import app
from tests.fakes.gateway import FakeGateway
from tests.inference.conftest import advance, live
from tests.people import person, signed_in
from tests.waiting import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def test_k4_ten_clicks_and_a_message_delivered_twice_make_one_key(
    member: User, client_of_fake: object, fake: FakeGateway
) -> None:
    fake.race_seconds = 0.05
    browsers = [signed_in(member) for _ in range(10)]
    answers = at_once([partial(browser.post, "/key/create") for browser in browsers])
    assert [answer.status_code for answer in answers] == [302] * 10
    assert sum("key_reveal" in answer.cookies for answer in answers) == 1
    at_once([tasks.gateway_advance_keys] * 2)
    at_once([tasks.gateway_advance_keys] * 2)
    assert live(member) == [("active", 100, 5)]
    assert [theirs["token"] for theirs in fake.keys.values()] == [Key.objects.get().token]
    winner = next(
        browser
        for browser, answer in zip(browsers, answers, strict=True)
        if "key_reveal" in answer.cookies
    )
    assert winner.post("/key/reveal").status_code == 200


def test_k4_ten_rotations_make_one_successor(
    member: User, client_of_fake: object, fake: FakeGateway
) -> None:
    keys.request_key(user=member, public_key=b"1" * 32)
    advance(member)
    browsers = [signed_in(member) for _ in range(10)]
    at_once([partial(browser.post, "/key/rotate", {"at_once": "1"}) for browser in browsers])
    at_once([tasks.gateway_advance_keys] * 4)
    advance(member)
    assert live(member) == [("active", 100, 5)]
    assert len(fake.keys) == 1
    assert fake.peaks[str(member.public_id)] == (100, 5)


def test_one_of_two_reveals_shows_the_key(
    member: User, client_of_fake: object, pair: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have read and opened it before either has deleted it."""
    key = keys.request_key(user=member, public_key=bytes(pair.public_key))
    advance(member)
    key.refresh_from_db()
    both = threading.Barrier(2)
    opened = reveal._open

    def open_together(*args: Any) -> str:
        both.wait(5)
        return opened(*args)

    monkeypatch.setattr(reveal, "_open", open_together)
    taken = at_once([lambda: reveal.take(key.id, key.token, pair)] * 2)
    assert sum(value is not None for value in taken) == 1


def test_asking_while_a_worker_is_in_the_middle(
    member: User, client_of_fake: object, fake: FakeGateway
) -> None:
    """She revokes while her key is being made: the worker sees it at its end."""
    keys.request_key(user=member, public_key=b"1" * 32)
    fake.seconds_per_call = 0.3
    worker = threading.Thread(target=tasks.gateway_advance_keys)
    worker.start()
    while not fake.calls:
        pass
    keys.revoke(user=member, actor=member)
    worker.join()
    assert (live(member), fake.keys) == ([], {})
    assert KeyHolder.objects.get().due_at is None


def test_k12_fifty_keys_none_stuck(client_of_fake: object, fake: FakeGateway, db: None) -> None:
    people = [person(f"p{number}") for number in range(50)]
    for user in people:
        keys.request_key(user=user, public_key=b"1" * 32)
    at_once([tasks.gateway_advance_keys] * 4)
    assert set(Key.objects.values_list("state", flat=True)) == {"active"}
    assert len(fake.keys) == 50
    assert fake.paths() == ["/key/generate"] * 50


def test_p2_the_gateway_has_a_queue_of_its_own() -> None:
    """Ten-minute work on the fleet's workers never stands before a key."""
    for task in (tasks.gateway_advance_keys, tasks.gateway_reconcile_keys):
        assert app.amqp.router.route({}, task.name)["queue"].name == "gateway"


def test_k12_a_request_that_rolls_back_publishes_nothing(member: User) -> None:
    with patch.object(app, "send_task") as publish:
        with transaction.atomic():
            keys.request_key(user=member, public_key=b"1" * 32)
            transaction.set_rollback(True)
        assert publish.call_count == 0
        keys.request_key(user=member, public_key=b"1" * 32)
        assert publish.call_count == 1
    assert Key.objects.count() == 1


def test_many_requests_publish_one_message(client_of_fake: object, db: None) -> None:
    people = [person(f"p{number}") for number in range(20)]
    with patch.object(app, "send_task") as publish:
        for user in people:
            keys.request_key(user=user, public_key=b"1" * 32)
        assert publish.call_count == 1
        tasks.gateway_advance_keys()
        # More than one batch brings another worker in.
        assert publish.call_count == 1 + len(people) // BATCH
        keys.revoke(user=people[0], actor=None)
        assert publish.call_count == 2 + len(people) // BATCH


def test_a_pass_ends_in_time_and_another_goes_on(
    client_of_fake: object, fake: FakeGateway, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No task runs for long; what it leaves is due at once and had no trouble."""
    monkeypatch.setattr(provisioning, "PASS_SECONDS", 0.25)
    fake.seconds_per_call = 0.1
    for number in range(BATCH):
        keys.request_key(user=person(f"p{number}"), public_key=b"1" * 32)
    called = []
    provisioning.advance_due(more=lambda: called.append(1))
    left = Key.objects.filter(state="requested")
    assert 0 < left.count() < BATCH
    assert len(called) == 2
    assert set(left.values_list("token", "holder__attempts", "holder__lease_until")) == {
        ("", 0, None)
    }
    monkeypatch.setattr(provisioning, "PASS_SECONDS", 10)
    provisioning.advance_due()
    assert (left.count(), fake.paths()) == (0, ["/key/generate"] * BATCH)


def test_a_lost_message_is_swept_up(member: User, client_of_fake: object) -> None:
    with patch.object(app, "send_task", side_effect=OSError("no broker")):
        keys.request_key(user=member, public_key=b"1" * 32)
    assert live(member) == [("requested", 0, 0)]
    tasks.gateway_advance_keys()
    assert live(member) == [("active", 100, 5)]


def test_the_end_of_an_overlap_needs_nobody(
    member: User, client_of_fake: object, fake: FakeGateway
) -> None:
    keys.request_key(user=member, public_key=b"1" * 32)
    tasks.gateway_advance_keys()
    keys.rotate(user=member, public_key=b"2" * 32, actor=member)
    tasks.gateway_advance_keys()
    old = Key.objects.get(outgoing=True)
    assert KeyHolder.objects.get().due_at == old.remove_at
    Key.objects.filter(pk=old.pk).update(remove_at=timezone.now())
    KeyHolder.objects.update(due_at=timezone.now())
    tasks.gateway_advance_keys()
    assert live(member) == [("active", 100, 5)]
    assert KeyHolder.objects.get().due_at is None


def test_two_workers_never_hold_one_members_keys(
    member: User, client_of_fake: object, fake: FakeGateway
) -> None:
    keys.request_key(user=member, public_key=b"1" * 32)
    fake.seconds_per_call = 0.2
    done = at_once([lambda: provisioning.advance(member.public_id)] * 8)
    assert sorted(done) == [False] * 7 + [True]
    assert fake.paths() == ["/key/generate"]
