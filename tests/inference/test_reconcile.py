"""Both sides compared, and put right."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from inference import keys, provisioning
from inference.models import Key, KeyHolder, Reconciliation
from inference.reconcile import reconcile
from members.models import User
from tests.fakes.gateway import FakeGateway, Manner, foreign_key
from tests.inference.conftest import advance, live

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("client_of_fake")]
Maker = Callable[[User], Key]


def counted() -> dict[str, int]:
    result = reconcile()
    assert result is not None
    names = ("ours", "theirs", "orphans", "spared", "missing", "differing")
    return {name: n for name in names if (n := getattr(result, name))}


def test_agreement(member: User, make_key: Maker) -> None:
    make_key(member)
    assert counted() == {"ours": 1, "theirs": 1}


def test_an_orphan_is_blocked_and_removed(member: User, make_key: Maker, fake: FakeGateway) -> None:
    key = make_key(member)
    orphan = foreign_key(fake, metadata={"site": settings.SITE_URL})
    fake.calls.clear()
    assert counted() == {"ours": 1, "theirs": 2, "orphans": 1}
    assert set(fake.keys) == {key.token}
    assert [c.path for c in fake.calls if c.body] == ["/key/block", "/key/delete"]
    assert orphan not in fake.keys


def test_others_keys_at_a_shared_gateway_are_left_alone(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    make_key(member)
    foreign_key(fake)
    foreign_key(fake, metadata={"site": "https://elsewhere.example"})
    assert counted() == {"ours": 1, "theirs": 3}
    assert len(fake.keys) == 3


def test_a_restored_backup_does_not_delete_everyones_keys(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    make_key(member)
    for _ in range(12):
        foreign_key(fake, metadata={"site": settings.SITE_URL})
    assert counted() == {"ours": 1, "theirs": 13, "spared": 12}
    assert len(fake.keys) == 13
    forced = reconcile(force=True)
    assert forced is not None
    assert (forced.orphans, len(fake.keys)) == (12, 1)


def test_a_key_that_is_being_made_is_no_orphan(
    member: User, fake: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison falls between the gateway's insert and our outcome."""
    from inference import reveal

    keys.request_key(user=member, public_key=b"1" * 32)
    seen = []
    real = reveal.leave

    def meanwhile(*args: object) -> None:
        seen.append(counted())
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(reveal, "leave", meanwhile)
    provisioning.advance(member.public_id)
    assert seen == [{"ours": 1, "theirs": 1}]
    assert live(member) == [("active", 100, 5)]


def test_a_missing_key_fails_in_words(member: User, make_key: Maker, fake: FakeGateway) -> None:
    make_key(member)
    fake.keys.clear()
    assert counted() == {"ours": 1, "missing": 1}
    advance(member)
    key = Key.objects.get()
    assert (key.state, key.error_code) == ("failed", "lost")
    assert counted() == {"ours": 1}


@pytest.mark.parametrize(
    "change", [{"blocked": True}, {"rpm_limit": 9999}, {"max_parallel_requests": None}]
)
def test_what_was_changed_behind_our_back_is_put_right(
    member: User, make_key: Maker, fake: FakeGateway, change: dict[str, object]
) -> None:
    key = make_key(member)
    fake.keys[key.token].update(change)
    assert counted() == {"ours": 1, "theirs": 1, "differing": 1}
    advance(member)
    [theirs] = fake.keys.values()
    assert (theirs["rpm_limit"], theirs["max_parallel_requests"]) == (100, 5)
    assert not theirs["blocked"]
    assert counted() == {"ours": 1, "theirs": 1}


def test_a_blocked_key_that_was_unblocked_is_blocked_again(
    member: User, admin: User, make_key: Maker, fake: FakeGateway
) -> None:
    key = make_key(member)
    keys.hold(user=member, actor=admin, reason="abuse")
    advance(member)
    fake.keys[key.token]["blocked"] = False
    assert counted() == {"ours": 1, "theirs": 1, "differing": 1}
    advance(member)
    assert fake.working(member.public_id) == []


def test_the_day_of_the_last_use(member: User, make_key: Maker, fake: FakeGateway) -> None:
    key = make_key(member)
    today = datetime.now(UTC).date()
    fake.usage.count(today, key.token)
    reconcile()
    assert Key.objects.get().last_used_on == today


def test_a_gateway_that_can_not_be_read_changes_nothing(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    make_key(member)
    fake.misbehave("/key/list", Manner.GARBAGE)
    assert reconcile() is None
    assert (live(member), Reconciliation.objects.count()) == ([("active", 100, 5)], 0)


def test_drift_is_a_metric(member: User, make_key: Maker, fake: FakeGateway) -> None:
    make_key(member)
    foreign_key(fake, metadata={"site": settings.SITE_URL})
    KeyHolder.objects.update(attempts=1, due_at=timezone.now())
    reconcile()
    lines = Client().get("/metrics").content.decode().splitlines()
    told = {line.rsplit(" ", 1)[0]: line.rsplit(" ", 1)[1] for line in lines if "nan_key" in line}
    assert told['nan_keys{state="active"}'] == "1.0"
    assert told['nan_key_drift{kind="orphans"}'] == "1.0"
    assert told['nan_key_drift{kind="missing"}'] == "0.0"
    assert told["nan_key_holders_failing"] == "1.0"
    assert float(told["nan_key_reconciled_timestamp_seconds"]) > 1.7e9
    key = Key.objects.get()
    for secret in (member.email, str(member.public_id), key.token, str(key.id)):
        assert secret not in "\n".join(lines)
