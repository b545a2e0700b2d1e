"""A key's whole life, as use cases and what the gateway then has."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from nacl.public import PrivateKey
from pytest_django import DjangoAssertNumQueries

from inference import keys, provisioning, reveal
from inference.gateway import ALLOWED_ROUTES
from inference.keys import KeyRefused
from inference.models import Key, KeyEvent, KeyHolder
from members.models import User
from tests.fakes.gateway import FakeGateway
from tests.inference.conftest import advance, live
from tests.people import person

pytestmark = pytest.mark.django_db
Maker = Callable[[User], Key]


def test_a_key_is_made_with_the_promised_limits(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    """L6."""
    key = make_key(member)
    [theirs] = fake.of(member.public_id)
    assert (theirs["token"], theirs["key_alias"]) == (key.token, str(key.id))
    assert (theirs["rpm_limit"], theirs["max_parallel_requests"]) == (100, 5)
    assert theirs["allowed_routes"] == ALLOWED_ROUTES
    assert (theirs["tpm_limit"], theirs["max_budget"], theirs["expires"]) == (None, None, None)
    assert (key.limits, key.hint) == ((100, 5), theirs["key_name"][-4:])


def test_a_create_costs_one_call(member: User, make_key: Maker, fake: FakeGateway) -> None:
    make_key(member)
    assert fake.paths() == ["/key/generate"]


def test_it_is_revealed_once_and_only_to_its_pair(
    member: User, make_key: Maker, pair: PrivateKey, fake: FakeGateway
) -> None:
    key = make_key(member)
    with pytest.raises(reveal.WrongBrowser):
        reveal.take(key.id, key.token, reveal.new_private_key())
    value = reveal.take(key.id, key.token, pair)
    assert value is not None
    assert fake.admits(value)
    assert reveal.take(key.id, key.token, pair) is None


def test_asking_again_gives_the_same_key(member: User, make_key: Maker, fake: FakeGateway) -> None:
    key = make_key(member)
    again = keys.request_key(user=member, public_key=b"2" * 32)
    assert again.pk == key.pk
    advance(member)
    assert len(fake.of(member.public_id)) == 1


def test_the_outgoing_key_shares_the_limits_for_a_day(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    old = make_key(member)
    new = keys.rotate(user=member, public_key=b"2" * 32, actor=member)
    advance(member)
    assert live(member) == [("active", 20, 1), ("active", 80, 4)]
    old.refresh_from_db()
    assert timedelta(hours=23) < old.remove_at - timezone.now() <= timedelta(hours=24)
    Key.objects.filter(pk=old.pk).update(remove_at=timezone.now())
    advance(member)
    assert live(member) == [("active", 100, 5)]
    assert [key["key_alias"] for key in fake.of(member.public_id)] == [str(new.pk)]
    assert fake.peaks[str(member.public_id)] == (100, 5)


def test_k8_a_rotated_key_has_the_same_rights(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    make_key(member)
    keys.rotate(user=member, public_key=b"2" * 32, actor=member)
    advance(member)
    one, two = fake.of(member.public_id)
    for name in ("allowed_routes", "metadata", "user_id", "tpm_limit", "max_budget", "expires"):
        assert one[name] == two[name]
    assert "/key/regenerate" not in fake.paths()


def test_a_second_rotation_waits_for_the_first(member: User, make_key: Maker) -> None:
    make_key(member)
    keys.rotate(user=member, public_key=b"2" * 32, actor=member)
    advance(member)
    with pytest.raises(KeyRefused) as refused:
        keys.rotate(user=member, public_key=b"3" * 32, actor=member)
    assert refused.value.code == "rotation_under_way"
    keys.end_overlap(user=member, actor=member)
    keys.rotate(user=member, public_key=b"3" * 32, actor=member)
    advance(member)
    assert live(member) == [("active", 20, 1), ("active", 80, 4)]


def test_a_leaked_key_stops_before_its_successor_is_made(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    old = make_key(member)
    fake.calls.clear()
    keys.rotate(user=member, public_key=b"2" * 32, actor=member, at_once=True)
    advance(member)
    assert fake.paths() == ["/key/block", "/key/delete", "/key/generate"]
    assert live(member) == [("active", 100, 5)]
    old.refresh_from_db()
    assert old.state == "deleted"
    assert fake.peaks[str(member.public_id)] == (100, 5)


def test_replacing_at_once_during_an_overlap_stops_both(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    make_key(member)
    keys.rotate(user=member, public_key=b"2" * 32, actor=member)
    advance(member)
    keys.rotate(user=member, public_key=b"3" * 32, actor=member, at_once=True)
    advance(member)
    assert live(member) == [("active", 100, 5)]
    assert len(fake.of(member.public_id)) == 1
    assert fake.peaks[str(member.public_id)] == (100, 5)


def test_one_request_at_a_time_can_not_be_shared(
    member: User, admin: User, make_key: Maker, fake: FakeGateway
) -> None:
    """With a limit of one, a rotation replaces at once."""
    make_key(member)
    keys.set_limits(user=member, rpm=100, parallel=1, actor=admin, reason="test")
    keys.rotate(user=member, public_key=b"2" * 32, actor=member)
    advance(member)
    assert live(member) == [("active", 100, 1)]


def test_limits_too_small_to_share_end_an_overlap(
    member: User, admin: User, make_key: Maker, fake: FakeGateway
) -> None:
    make_key(member)
    keys.rotate(user=member, public_key=b"2" * 32, actor=member)
    advance(member)
    keys.set_limits(user=member, rpm=100, parallel=1, actor=admin, reason="abuse")
    fake.calls.clear()
    advance(member)
    assert fake.paths()[:2] == ["/key/block", "/key/delete"]
    assert live(member) == [("active", 100, 1)]


def test_there_is_nothing_to_rotate_without_a_key(member: User) -> None:
    with pytest.raises(KeyRefused) as refused:
        keys.rotate(user=member, public_key=b"2" * 32, actor=member)
    assert refused.value.code == "nothing_to_rotate"


def test_pause_and_resume(member: User, make_key: Maker, fake: FakeGateway) -> None:
    make_key(member)
    keys.pause(user=member, actor=member)
    assert keys.pending_at_gateway(member) is True
    advance(member)
    assert (live(member), fake.working(member.public_id)) == ([("blocked", 100, 5)], [])
    assert keys.pending_at_gateway(member) is False
    keys.resume(user=member, actor=member)
    advance(member)
    assert len(fake.working(member.public_id)) == 1


def test_revoke_blocks_before_it_deletes(member: User, make_key: Maker, fake: FakeGateway) -> None:
    """K7: a deletion alone takes a minute to reach a second instance, a block does not."""
    key = make_key(member)
    fake.calls.clear()
    keys.revoke(user=member, actor=member)
    advance(member)
    assert fake.paths() == ["/key/block", "/key/delete"]
    key.refresh_from_db()
    assert (key.state, fake.keys) == ("deleted", {})
    assert key.deleted_at is not None


def test_a_key_that_was_never_made_is_forgotten(member: User, fake: FakeGateway) -> None:
    keys.request_key(user=member, public_key=b"1" * 32)
    keys.revoke(user=member, actor=member)
    provisioning.advance(member.public_id)
    assert (live(member), fake.calls) == ([], [])


def test_a_suspension_keeps_the_members_own_pause(
    member: User, admin: User, make_key: Maker, fake: FakeGateway
) -> None:
    make_key(member)
    keys.pause(user=member, actor=member)
    advance(member)
    keys.hold(user=member, actor=admin, reason="abuse")
    keys.release(user=member, actor=admin)
    advance(member)
    assert live(member) == [("blocked", 100, 5)]
    keys.resume(user=member, actor=member)
    advance(member)
    assert live(member) == [("active", 100, 5)]


def test_a_suspension_stops_every_key_and_forbids_new_ones(
    member: User, admin: User, make_key: Maker, fake: FakeGateway
) -> None:
    """A4."""
    make_key(member)
    keys.rotate(user=member, public_key=b"2" * 32, actor=member)
    advance(member)
    keys.hold(user=member, actor=admin, reason="abuse")
    advance(member)
    assert fake.working(member.public_id) == []
    keys.resume(user=member, actor=member)
    advance(member)
    assert fake.working(member.public_id) == []
    with pytest.raises(KeyRefused):
        keys.rotate(user=member, public_key=b"3" * 32, actor=member, at_once=True)


def test_a_suspension_gives_up_a_key_that_is_being_made(member: User, admin: User) -> None:
    keys.request_key(user=member, public_key=b"1" * 32)
    keys.hold(user=member, actor=admin, reason="abuse")
    provisioning.advance(member.public_id)
    assert live(member) == []
    with pytest.raises(KeyRefused) as refused:
        keys.request_key(user=member, public_key=b"1" * 32)
    assert refused.value.code == "held"


def test_limits_of_a_member(member: User, admin: User, make_key: Maker, fake: FakeGateway) -> None:
    make_key(member)
    keys.set_limits(user=member, rpm=10, parallel=2, actor=admin, reason="abuse")
    advance(member)
    assert live(member) == [("active", 10, 2)]
    keys.set_limits(user=member, rpm=500, parallel=9, actor=admin, reason="a workshop")
    advance(member)
    keys.rotate(user=member, public_key=b"2" * 32, actor=member)
    advance(member)
    assert live(member) == [("active", 100, 1), ("active", 400, 8)]
    keys.set_limits(user=member, rpm=None, parallel=None, actor=admin, reason="over")
    advance(member)
    assert live(member) == [("active", 20, 1), ("active", 80, 4)]
    with pytest.raises(ValueError, match="at least 1"):
        keys.set_limits(user=member, rpm=-1, parallel=5, actor=admin, reason="typo")


def test_l4_new_keys_are_no_way_around_the_limits(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    make_key(member)
    for number in range(2, keys.NEW_KEYS_A_DAY + 1):
        keys.rotate(user=member, public_key=bytes([number]) * 32, actor=member, at_once=True)
        advance(member)
    with pytest.raises(KeyRefused) as refused:
        keys.rotate(user=member, public_key=b"x" * 32, actor=member, at_once=True)
    assert refused.value.code == "too_many"
    assert live(member) == [("active", 100, 5)]
    assert fake.peaks[str(member.public_id)] == (100, 5)


def test_k11_members_do_not_share_names(
    member: User, make_key: Maker, fake: FakeGateway, seats: object
) -> None:
    other = person("Olga")
    assert make_key(member).pk != make_key(other).pk
    assert len({key["key_alias"] for key in fake.keys.values()}) == 2


def test_keys_outlive_the_person(member: User, make_key: Maker, fake: FakeGateway) -> None:
    make_key(member)
    owner_ref = member.public_id
    keys.remove_all(user=member, actor=None, reason="left")
    User.objects.filter(pk=member.pk).delete()
    provisioning.advance(owner_ref)
    holder = KeyHolder.objects.get(pk=owner_ref)
    assert (holder.member, fake.of(owner_ref)) == (None, [])
    assert [key.state for key in holder.keys.all()] == ["deleted"]


def test_every_change_has_its_actor_and_reason(member: User, admin: User, make_key: Maker) -> None:
    make_key(member)
    keys.hold(user=member, actor=admin, reason="abuse")
    keys.release(user=member, actor=admin)
    keys.pause(user=member, actor=member)
    keys.resume(user=member, actor=member)
    keys.rotate(user=member, public_key=b"2" * 32, actor=member)
    advance(member)
    keys.end_overlap(user=member, actor=member)
    keys.revoke(user=member, actor=member)
    events = KeyEvent.objects.order_by("pk").values_list("what", "actor__email", "reason")
    assert list(events) == [
        ("requested", member.email, ""),
        ("held", admin.email, "abuse"),
        ("released", admin.email, ""),
        ("paused", member.email, ""),
        ("resumed", member.email, ""),
        ("rotated", member.email, ""),
        ("overlap_ended", member.email, ""),
        ("revoked", member.email, ""),
        ("revoked", member.email, ""),
    ]


def test_a_summary_takes_two_queries(
    member: User, make_key: Maker, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(2, 6):
        make_key(member)
        keys.rotate(user=member, public_key=bytes([number]) * 32, actor=member, at_once=True)
        advance(member)
    with django_assert_num_queries(2):
        keys.summary(member)
