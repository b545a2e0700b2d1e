"""The order of steps, without a gateway and without rows."""

from datetime import timedelta

from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from inference.limits import NOTHING, Limits
from inference.models import Key, KeyHolder, KeyState
from inference.plan import Action, Step, next_step

NOW = timezone.now()
SOON, PAST = NOW + timedelta(hours=1), NOW - timedelta(hours=1)
OUTCOMES = {
    Action.BLOCK: KeyState.BLOCKED,
    Action.UNBLOCK: KeyState.ACTIVE,
    Action.CREATE: KeyState.ACTIVE,
    Action.DELETE: KeyState.DELETED,
    Action.FORGET: KeyState.DELETED,
}


def key(state: str, limits: Limits = NOTHING, **fields: object) -> Key:
    made = None if state == KeyState.REQUESTED else PAST
    token = "" if made is None else "t"
    return Key(
        state=state, rpm=limits.rpm, parallel=limits.parallel, token=token, active_at=made, **fields
    )


def apply(step: Step) -> None:
    """What the worker writes after the gateway has confirmed."""
    step.key.state = OUTCOMES.get(step.action, step.key.state)
    if step.action in (Action.LIMIT, Action.CREATE):
        step.key.rpm, step.key.parallel = step.limits
    if step.action == Action.CREATE:
        step.key.active_at, step.key.token = NOW, "t"


def granted(keys: list[Key]) -> Limits:
    return sum((k.limits for k in keys if k.state == KeyState.ACTIVE), start=NOTHING)


some_limits = st.builds(Limits, st.integers(1, 300), st.integers(1, 12))


@st.composite
def stories(draw: st.DrawFn) -> tuple[KeyHolder, list[Key], Limits]:
    """A holder whose keys are within older limits, and her new limits and wishes."""
    old = draw(some_limits)
    new = draw(some_limits)
    holder = KeyHolder(own_rpm=new.rpm, own_parallel=new.parallel, paused=draw(st.booleans()))
    working = st.sampled_from([KeyState.ACTIVE, KeyState.BLOCKED])
    out = Limits(old.rpm // 2, old.parallel // 2)
    rest = Limits(old.rpm - out.rpm, old.parallel - out.parallel)
    keys = [key(draw(working), out, remove_at=draw(st.sampled_from([SOON, PAST])), outgoing=True)]
    if draw(st.booleans()):
        keys.append(key(KeyState.REQUESTED))
    else:
        keys.append(key(draw(working), rest))
    if draw(st.booleans()):
        keys.append(key(draw(st.sampled_from([KeyState.BLOCKED])), old, remove_at=PAST))
    return holder, draw(st.permutations(keys)), Limits(max(old.rpm, new.rpm), max(old[1], new[1]))


@given(stories())
def test_the_total_stays_within_the_limits_at_every_step(
    story: tuple[KeyHolder, list[Key], Limits],
) -> None:
    holder, keys, most = story
    below = False
    for _ in range(30):
        total = granted(keys)
        assert total.within(most)
        below = below or total.within(holder.limits)
        assert not below or total.within(holder.limits), "given before it was taken"
        step = next_step(holder, keys, NOW)
        if step is None:
            break
        apply(step)
        keys = [k for k in keys if k.state != KeyState.DELETED]
    else:
        raise AssertionError("never comes to rest")
    assert [k.state for k in keys if k.remove_at == PAST] == []
    if holder.paused:
        assert granted(keys) == NOTHING
    else:
        assert granted(keys) == holder.limits
