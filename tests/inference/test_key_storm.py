"""Random stories: whatever members, admins and the gateway do, the promises hold."""

import random

import pytest
from django.utils import timezone

from inference import keys, provisioning
from inference.limits import Limits
from inference.models import Key, KeyHolder
from members.models import User
from tests.fakes.gateway import FakeGateway, Manner
from tests.inference.conftest import advance

pytestmark = pytest.mark.django_db
FULL = Limits(100, 5)
PATHS = ["/key/generate", "/key/update", "/key/block", "/key/unblock", "/key/delete", "/key/list"]
MANNERS = [Manner.FAIL, Manner.ACT_THEN_FAIL, Manner.ACT_THEN_DROP, Manner.GARBAGE]


def press_something(dice: random.Random, user: User, admin: User) -> None:
    pair = bytes([dice.randrange(2, 250)]) * 32
    actions = [
        lambda: keys.request_key(user=user, public_key=pair),
        lambda: keys.rotate(user=user, public_key=pair, actor=user),
        lambda: keys.rotate(user=user, public_key=pair, actor=user, at_once=True),
        lambda: keys.end_overlap(user=user, actor=user),
        lambda: keys.pause(user=user, actor=user),
        lambda: keys.resume(user=user, actor=user),
        lambda: keys.revoke(user=user, actor=user),
        lambda: keys.hold(user=user, actor=admin, reason="storm"),
        lambda: keys.release(user=user, actor=admin),
        lambda: keys.set_limits(user=user, rpm=10, parallel=2, actor=admin, reason="storm"),
        lambda: keys.set_limits(user=user, rpm=100, parallel=1, actor=admin, reason="storm"),
        lambda: keys.set_limits(user=user, rpm=None, parallel=None, actor=admin, reason="storm"),
        lambda: Key.objects.of(user).filter(outgoing=True).update(remove_at=timezone.now()),
    ]
    try:
        dice.choice(actions)()
    except keys.KeyRefused:
        return


@pytest.mark.parametrize("seed", range(25))
def test_a_storm(
    seed: int, member: User, admin: User, client_of_fake: object, fake: FakeGateway
) -> None:
    dice = random.Random(seed)
    for _ in range(30):
        press_something(dice, member, admin)
        if dice.random() < 0.4:
            fake.misbehave(dice.choice(PATHS), *dice.choices(MANNERS, k=dice.randrange(1, 3)))
        if dice.random() < 0.1:
            KeyHolder.objects.exclude(due_at=None).update(lease_until=timezone.now())
        if dice.random() < 0.7:
            provisioning.advance(member.public_id)
        granted = Limits(*fake.peaks.get(str(member.public_id), (0, 0)))
        assert granted.within(FULL), f"{granted} granted"
    fake.manners.clear()
    keys.release(user=member, actor=admin)
    keys.resume(user=member, actor=member)
    advance(member)
    ours = {key.token for key in Key.objects.of(member).live() if key.state == "active"}
    assert {key["token"] for key in fake.working(member.public_id)} == ours
    assert {key["token"] for key in fake.of(member.public_id)} == ours
    assert len(ours) <= 2
    keys.remove_all(user=member, actor=admin, reason="end")
    advance(member)
    assert fake.of(member.public_id) == []
