"""What is done to a key takes effect at the gateway: within a minute, under traffic, and also if
the gateway was down at that moment. Until it is confirmed, the page says that it waits."""

import re
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field

import pytest

from tests.api import ApiClient, Traffic
from tests.pages.markup import words
from tests.stack import Stack
from tests.visitor import Visitor, admin, members
from tests.waiting import wait_until

BOUND = 60  # seconds, promised
OUTAGE = 6  # seconds: several attempts fail in it


@dataclass(frozen=True)
class Change:
    """`waiting`: what a page says until the gateway has confirmed; `done`: what it says then."""

    do: Callable[["Trial"], object]
    waiting: str
    done: str
    works: bool = False  # the key that she had before
    before: Callable[["Trial"], object] = lambda trial: None
    look: Callable[["Trial"], str] = lambda trial: words(trial.person.get("/key/"))


@dataclass
class Trial:
    """One change to one person, and what was seen of it."""

    change: Change
    person: Visitor
    admin: Visitor
    key: str
    traffic: Traffic
    said_while_down: list[str] = field(default_factory=list)
    said_after: str = ""
    login_while_down: str = ""
    goodbye: str = ""
    free_from: float = 0.0  # when the gateway could be told
    seconds: float = 0.0  # from then until the change was seen in the traffic

    def staff_page(self) -> str:
        found = re.search(
            r"/staff/members/\d+/", self.admin.get(f"/staff/members/?q={self.person.email}")
        )
        assert found
        return found[0]

    def suspend(self) -> None:
        self.admin.post(self.staff_page() + "suspend/", {"reason": "Sold her key."})

    def is_suspended_at_the_gateway(self) -> bool:
        return "pending at the gateway" not in staff_words(self)

    def leave(self) -> None:
        answer = self.person.post("/account/leave/", {"email": self.person.email})
        self.goodbye = answer.url.path

    def has_taken_effect(self) -> bool:
        status = self.traffic.last()
        return status in (200, 429) if self.change.works else status == 401


def staff_words(trial: Trial) -> str:
    return words(trial.admin.get(trial.staff_page()))


def goodbye_words(trial: Trial) -> str:
    return words(trial.person.get(trial.goodbye))


def pause_first(trial: Trial) -> None:
    trial.person.post("/key/pause")
    wait_until(lambda: trial.traffic.last() == 401, seconds=BOUND, what="the pause")
    wait_until(lambda: " paused " in words(trial.person.get("/key/")), seconds=20, what="paused")


def suspend_first(trial: Trial) -> None:
    trial.suspend()
    wait_until(lambda: trial.traffic.last() == 401, seconds=BOUND, what="the suspension")
    wait_until(trial.is_suspended_at_the_gateway, seconds=20, what="the confirmation")


STOPPING = "Waiting for the gateway to confirm that it has stopped. Until then it still works."
CHANGES = {
    "pause": Change(
        do=lambda t: t.person.post("/key/pause"),
        waiting="Waiting for the gateway to confirm the pause. Until then the key still works.",
        done=" paused ",
    ),
    "resume": Change(
        before=pause_first,
        do=lambda t: t.person.post("/key/resume"),
        waiting="Waiting for the gateway to let the key in again.",
        done=" active ",
        works=True,
    ),
    "revoke": Change(
        do=lambda t: t.person.post("/key/revoke"), waiting=STOPPING, done="You have no key yet."
    ),
    "replace at once": Change(
        do=lambda t: t.person.post("/key/rotate", {"at_once": "1"}),
        waiting=STOPPING,
        done="Show my key",
    ),
    "replace with overlap": Change(
        do=lambda t: t.person.post("/key/rotate"),
        waiting="Your key is being made at the gateway.",
        done="Show my key",
        works=True,
    ),
    "suspend": Change(
        do=Trial.suspend, look=staff_words, waiting="pending at the gateway", done=" Reinstate "
    ),
    "reinstate": Change(
        before=suspend_first,
        do=lambda t: t.admin.post(t.staff_page() + "reinstate/"),
        look=staff_words,
        waiting="pending at the gateway",
        done=" Suspend ",
        works=True,
    ),
    "leave": Change(
        do=Trial.leave,
        look=goodbye_words,
        waiting="Pending: the gateway has yet to confirm that your keys are gone.",
        done="Done: no key of yours is left at the gateway.",
    ),
}


def tried(stack: Stack, *, down: bool) -> dict[str, Trial]:
    """Every change, each to another person, all in the same minute."""
    staff = admin(stack)
    people = members(stack, len(CHANGES))
    trials = {}
    with ExitStack() as running:
        for (name, change), person in zip(CHANGES.items(), people, strict=True):
            key = person.create_key()
            traffic = running.enter_context(Traffic(ApiClient(stack.api, key)))
            trials[name] = Trial(change, person, staff, key, traffic)
        for trial in trials.values():
            wait_until(lambda t=trial: t.traffic.last() == 200, seconds=20, what="traffic")
            trial.change.before(trial)
        with stack.down("gateway") if down else nullcontext():
            for trial in trials.values():
                trial.change.do(trial)
                trial.free_from = time.monotonic()
            if down:
                watch_while_down(trials)
        if down:
            for trial in trials.values():
                trial.free_from = time.monotonic()
        for trial in trials.values():
            watch_until_done(trial)
        time.sleep(3)  # of traffic after the last change
    return trials


def watch_while_down(trials: dict[str, Trial]) -> None:
    for pause in (0, OUTAGE):
        time.sleep(pause)
        for trial in trials.values():
            trial.said_while_down.append(trial.change.look(trial))
    suspended = trials["suspend"].person
    suspended.http.cookies.delete("session")
    suspended.sign_in()
    trials["suspend"].login_while_down = str(suspended.http.get("/key/").url)


def watch_until_done(trial: Trial) -> None:
    change = trial.change
    wait_until(trial.has_taken_effect, seconds=BOUND + 15, what=f"{change.waiting} to end")
    trial.seconds = time.monotonic() - trial.free_from
    trial.said_after = wait_until(
        lambda: (
            (said := change.look(trial))
            and change.waiting not in said
            and change.done in said
            and said
        ),
        seconds=BOUND,
        what=f"the page to say {change.done!r} and no longer {change.waiting!r}",
    )


@pytest.fixture(scope="module")
def with_gateway_up(stack: Stack) -> dict[str, Trial]:
    return tried(stack, down=False)


@pytest.fixture(scope="module")
def with_gateway_down(stack: Stack) -> dict[str, Trial]:
    return tried(stack, down=True)


@pytest.fixture(params=["up", "down"], scope="module")
def trials(request: pytest.FixtureRequest) -> dict[str, Trial]:
    both: dict[str, Trial] = request.getfixturevalue(f"with_gateway_{request.param}")
    return both


@pytest.mark.parametrize("name", CHANGES)
def test_takes_effect_within_a_minute_under_traffic(trials: dict[str, Trial], name: str) -> None:
    """K7 for what takes away; the same bound for what gives back."""
    trial = trials[name]
    assert trial.seconds < BOUND
    assert trial.change.done in trial.said_after
    statuses = trial.traffic.since(trial.free_from + trial.seconds + 0.1)
    assert statuses
    assert set(statuses) <= ({200, 429} if trial.change.works else {401})


@pytest.mark.parametrize("name", CHANGES)
def test_says_that_it_waits_while_the_gateway_is_down(
    with_gateway_down: dict[str, Trial], name: str
) -> None:
    trial = with_gateway_down[name]
    assert len(trial.said_while_down) == 2
    for said in trial.said_while_down:
        assert trial.change.waiting in said
        if name not in ("suspend", "reinstate"):  # said beside, of the membership
            assert trial.change.done not in said


def test_a_suspended_person_is_out_at_once_with_the_gateway_down(
    stack: Stack, with_gateway_down: dict[str, Trial]
) -> None:
    """A4: no session, no sign-in, whatever the gateway does."""
    assert "/accounts/login/" in with_gateway_down["suspend"].login_while_down


def test_a_suspended_person_has_no_session(stack: Stack, with_gateway_up: dict[str, Trial]) -> None:
    answer = with_gateway_up["suspend"].person.http.get("/key/")
    assert answer.url.path == "/accounts/login/"


def test_a_person_who_left_is_gone(stack: Stack, with_gateway_up: dict[str, Trial]) -> None:
    """Her address is free: she is unknown at the door, and her key at the gateway."""
    person = with_gateway_up["leave"].person
    rows = stack.python(
        "import sys\nfrom members.models import User\n"
        "print(User.objects.filter(email=sys.argv[1]).count(),"
        " User.objects.filter(public_id=sys.argv[2]).count())",
        person.email,
        person.public_id,
    )
    assert rows.split() == ["0", "0"]
