"""A whole vote on the running product, in seven people's browsers: from a pasted address to a plan
that waits for its day."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_votes import drag, row
from tests.browser.window import Open, Window, at
from tests.stack import Stack
from tests.visitor import admin, members
from tests.waiting import wait_until

MADRID = ZoneInfo("Europe/Madrid")
NAME = "2026-Q4"
BALLOT = f"/vote/{NAME}/"
STAFF = f"/staff/votes/{NAME}/"
NEW = "acme/made-for-this-vote-7B"

SLOT = """
import json
from inference.models import CatalogModel, Slot
from members.models import Membership
slot = Slot.objects.get(name="nan")
other = CatalogModel.objects.offered().filter(kind="chat").exclude(pk=slot.model_id).first()
print(json.dumps([str(slot.model), str(other), other.repo, Membership.objects.count()]))
"""
# The only thing that is not waited for. Postgres would refuse it to anybody.
DEADLINE_PASSES = """
from datetime import timedelta
from django.db import connection, transaction
from django.utils import timezone
from members.models import Vote
now = timezone.now()
with transaction.atomic(), connection.cursor() as cursor:
    cursor.execute("ALTER TABLE members_vote DISABLE TRIGGER USER")
    Vote.objects.filter(state="open").update(
        opened_at=now - timedelta(days=7), closes_at=now - timedelta(seconds=1)
    )
    cursor.execute("ALTER TABLE members_vote ENABLE TRIGGER USER")
"""
FORGET_THE_PLAN = """
from inference.models import Swap
from inference.swaps import plan
for swap in Swap.objects.filter(ratified_vote__isnull=False, state__in=("planned", "approved")):
    plan.cancel(swap=swap, actor=None)
"""


@dataclass(frozen=True)
class Place:
    """What runs, and another entry of the catalogue."""

    current: str
    other: str
    repo: str


@pytest.fixture
def place(stack: Stack) -> Iterator[Place]:
    current, other, repo, people = json.loads(stack.python(SLOT))
    assert people < 250, "three ballots are no quorum of 1 % any more"
    yield Place(current, other, repo)
    stack.python(FORGET_THE_PLAN)


# -- Chapters -------------------------------------------------------------------------------------
def propose(her: Window, repo: str) -> None:
    her.open("/vote/")
    her.follow("Propose a model")
    her.fill(repo=f"https://huggingface.co/{repo}", reason="It reads pictures of forms.")
    her.press("Propose")
    her.sees("Beside what runs now")


def second(her: Window, repo: str) -> None:
    """She wants to propose the same, and is led to what is there."""
    her.open("/vote/propose/")
    her.fill(repo=repo, reason="Me too.")
    her.press("Propose")
    her.sees("This model is proposed already.")
    her.page.get_by_role("button", name=f"Second it {repo}").click()
    her.sees("Seconded.")
    expect(her.page.locator("section.card", has_text=repo)).to_contain_text("1 member seconds it")


def prepare(alma: Window) -> None:
    alma.open("/staff/votes/")
    alma.page.get_by_text("Prepare a round").click()
    if alma.page.locator("[name=slot]").count():
        alma.page.select_option("[name=slot]", "nan")
    alma.fill(slug=NAME, quorum_percent="1")
    alma.press("Prepare")
    alma.sees("It can't open yet:")


def vet(alma: Window, repo: str) -> None:
    """Types what the hub has not said, and puts it on the ballot. What the catalogue says is not
    typed."""
    alma.open("/staff/votes/")
    alma.follow(repo)
    alma.page.get_by_text("Type what is wrong or missing").click()
    alma.fill(languages="es, en, ca")
    if repo == NEW:
        alma.fill(context="262144", weights_bytes="15.200.000.000", licence="apache-2.0")
        alma.page.get_by_label("calling tools").check()
    else:
        alma.sees("This repository is in the catalogue")
        expect(alma.page.locator("[name=context]")).to_have_count(0)
    alma.press("Save")
    alma.sees("Typed by an admin:")
    alma.sees("Saved. What you typed stands over what was looked up.")
    alma.press(f"Put it on the ballot of {NAME}")
    alma.sees("On the ballot.")


def open_it(alma: Window) -> None:
    alma.page.get_by_text("Open it now").click()
    until = datetime.now(MADRID) + timedelta(days=7)
    alma.page.fill("form[action$='/open/'] [name=closes_at]", f"{until:%Y-%m-%dT%H:%M}")
    alma.press("Open the vote")
    alma.sees("The roll and the options are fixed")


def ranked(page: Page) -> list[str]:
    found = page.eval_on_selector_all(
        "#ranking > li select", "all => all.map(one => [one.name.slice(5), one.value])"
    )
    return [code for code, place in found if place]


def cast(her: Window) -> str:
    """The four words."""
    her.page.click("#ranking-form .actions .button")
    her.sees("Your ballot is stored")
    her.press("Show my four words")
    return her.page.locator("#receipt-words").inner_text()


def by_dragging(ana: Window, repo: str) -> str:
    """Clicks twice, goes back, and casts another ranking: one ballot, the same words."""
    ana.open(BALLOT)
    drag(ana.page, NEW, ana.page.locator("#ranking .divider"))
    ana.page.dblclick("#ranking-form .actions .button")
    ana.sees("Your ballot is stored")
    ana.page.go_back()
    ana.page.wait_for_load_state("load")
    drag(ana.page, repo, row(ana.page, NEW))
    assert ranked(ana.page) == [repo, NEW]
    return cast(ana)


def by_keyboard(bea: Window, repo: str) -> str:
    bea.open(BALLOT)
    for code in (repo, "keep"):
        row(bea.page, code).locator(".handle").focus()
        bea.page.keyboard.press("ArrowUp")
    assert ranked(bea.page) == [repo, "keep"]
    return cast(bea)


def by_numbers(carla: Window) -> str:
    """Without scripts."""
    carla.open(BALLOT)
    row(carla.page, "keep").locator("select").select_option("1")
    return cast(carla)


def nothing_is_counted_yet(her: Window) -> None:
    her.open(f"{BALLOT}result/")
    assert her.page.url.endswith(BALLOT)


def too_late(dora: Window, repo: str) -> None:
    """Her page was open when the deadline passed."""
    dora.page.select_option(f"[name='rank:{repo}']", "1")
    dora.page.click("#ranking-form .actions .button")
    dora.sees("This vote is over; this ballot was not counted.")


def the_result(her: Window, place: Place, words: str) -> None:
    def counted() -> bool:
        her.open(f"{BALLOT}result/")
        return her.page.url.endswith("/result/")

    wait_until(counted, seconds=30, what="the beat to close the vote", every=1)
    her.sees(f"{place.other} wins.")
    her.sees(f"2 prefer {place.other} (C) to {place.current} (A), 1 the other way round.")
    her.fill(receipt=words)
    her.press("Find it")
    expect(her.page.locator("#found")).to_contain_text("It was counted as:")


def count_again(her: Window, place: Place, folder: Path) -> None:
    """In the browser, and by the program that anybody can download and run."""
    her.follow("Count them again")
    for name in ("JSON", "nan-tally.zip"):
        with her.page.expect_download() as download:
            her.follow(name)
        download.value.save_as(folder / name)
    with zipfile.ZipFile(folder / "nan-tally.zip") as packed:
        packed.extractall(folder)
    tally = [sys.executable, "-m", "members.tally", "JSON"]
    said = subprocess.run(tally, cwd=folder, check=True, capture_output=True, text=True).stdout
    assert f"Result: {place.repo} (C)" in said
    her.press("Count now")
    expect(her.page.locator("#said .good")).to_have_text(
        "The same: table, order, quorum and result."
    )
    assert her.page.locator("#ours .digest, .digest").last.inner_text() in said


def ratify(alma: Window) -> None:
    alma.open(STAFF)
    alma.follow("Make a plan of it")
    alma.fill(
        start_at=f"{datetime.now(MADRID) + timedelta(days=3):%Y-%m-%dT%H:%M}",
        announcement_es="Cambiamos el domingo. No tenéis que hacer nada.",
        announcement_en="We change on Sunday. You need to do nothing.",
    )
    alma.press("Plan it")
    alma.sees("must approve the swap; then members get one mail.")


def approve(bruno: Window) -> None:
    bruno.open(STAFF)
    bruno.follow("The planned swap")
    bruno.press("Approve")
    bruno.sees("approved")


# -- The story ------------------------------------------------------------------------------------
def test_from_a_pasted_address_to_a_plan(
    window: Open, stack: Stack, place: Place, tmp_path: Path
) -> None:
    people = members(stack, 4)
    ana, bea, dora = (at(window, people[number]) for number in (0, 1, 3))
    carla = at(window, people[2], java_script_enabled=False)
    alma, bruno = (at(window, admin(stack)) for _ in range(2))
    propose(ana, NEW)
    propose(ana, place.repo)
    second(bea, NEW)
    prepare(alma)
    for repo in (NEW, place.repo):
        vet(alma, repo)
    open_it(alma)
    assert NAME in stack.mail(people[0].email, about="is open")

    words = [by_dragging(ana, place.repo), by_keyboard(bea, place.repo), by_numbers(carla)]
    assert len(set(words)) == 3
    bea.press("Mail it to me")
    assert words[1] in stack.mail(people[1].email, about="receipt of your ballot")
    nothing_is_counted_yet(ana)
    dora.open(BALLOT)
    stack.python(DEADLINE_PASSES)
    too_late(dora, place.repo)

    the_result(ana, place, words[0])
    assert "3 of" in stack.mail(people[3].email, about="who could vote did")
    count_again(ana, place, tmp_path)
    ratify(alma)
    approve(bruno)
    planned = stack.mail(people[2].email, about="takes the place of")
    assert "We change on Sunday." in planned
    ana.open("/vote/")
    ana.sees(f"{place.current} → {place.other} confirmed")
    ana.sees(f"{NAME} ")
