"""The ballot and the recount as people use them: by mouse, by keyboard, without scripts."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from members.models import Ballot, User, Vote
from members.tally import count, decide, digest
from members.voting import ballots, closing, receipts, results
from tests.browser.chromium import Complaints, too_wide
from tests.browser.test_skin import sign_in
from tests.browser.vote_states import REPOS, round_of
from tests.inference.staff import rows
from tests.members.voting.conftest import deadline_passes, joined
from tests.people import staff

pytestmark = pytest.mark.django_db(transaction=True)
A, B, C = REPOS
ROW = "#ranking > li:not(.divider)"
Open = Callable[..., Page]


@pytest.fixture
def vote() -> Vote:
    for name in ("Ana", "Bea", "Carla"):
        joined(name)
    slot, _replicas, _new = rows.small_fleet(1)
    return round_of(slot, "2026-Q4", staff("Alma"), User.objects.get(name="Carla"))


@pytest.fixture
def ana(browser: Browser, live_server: LiveServer, vote: Vote) -> Iterator[Open]:
    """Opens a page of the vote as Ana; none may have complained in the end."""
    opened: list[tuple[BrowserContext, Complaints]] = []

    def open_one(path: str = "", **options: Any) -> Page:
        window = {"viewport": {"width": 360, "height": 740}, "locale": "en", **options}
        context = browser.new_context(**window)
        sign_in(context, live_server, User.objects.get(name="Ana"))
        page = context.new_page()
        opened.append((context, Complaints(page)))
        page.goto(f"{live_server.url}/vote/2026-Q4/{path}")
        return page

    yield open_one
    for context, complaints in opened:
        assert complaints.take() == []
        context.close()


def row(page: Page, code: str) -> Any:
    return page.locator(ROW).filter(has=page.locator(f'[name="rank:{code}"]'))


def shown(page: Page) -> list[str]:
    """Codes of the ranked rows in the order in which they lie, with their numbers."""
    found = page.eval_on_selector_all(
        f"{ROW} select", "all => all.map(one => [one.name.slice(5), one.value])"
    )
    return [f"{code} {value}" for code, value in found if value]


def stored() -> Any:
    vote, user = Vote.objects.get(slug="2026-Q4"), User.objects.get(name="Ana")
    return ballots.mine(vote=vote, user=user)


def cast(page: Page) -> None:
    page.click("#ranking-form .actions .button")
    expect(page.locator("h1")).to_have_text("Your ballot is stored")


def drag(page: Page, code: str, onto: Any) -> None:
    """To a little above the middle of another row: before it."""
    handle = row(page, code).locator(".handle")
    handle.scroll_into_view_if_needed()
    start, box = handle.bounding_box(), onto.bounding_box()
    assert start
    assert box
    page.mouse.move(start["x"] + 10, start["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2 - 12, steps=8)
    page.mouse.up()


# -- What stands on it --------------------------------------------------------------------------
def opens_and_closes(page: Page, name: str) -> None:
    """Without scripts too: what is folded is the browser's own to open."""
    card = page.locator(".candidates .card", has_text=name)
    rest = card.locator("details")
    expect(card.locator("> .beside tbody tr").first).to_be_visible()
    expect(rest.get_by_text("Spanish, English, Catalan")).to_be_hidden()
    rest.locator("summary").click()
    expect(rest.get_by_text("Spanish, English, Catalan")).to_be_visible()
    rest.locator("summary").click()


@pytest.mark.parametrize("scripts", [True, False])
def test_four_options_are_compared_on_few_screens(ana: Open, scripts: bool) -> None:
    """Only what differs is open; nothing of the comparison is lost."""
    page = ana(java_script_enabled=scripts)
    assert page.locator(".candidates .card").count() == 3
    opens_and_closes(page, "Qwen3-Coder")
    folded = page.locator("main").bounding_box()
    begins = page.locator("#ballot").bounding_box()
    assert folded
    assert begins
    assert begins["y"] < 4.5 * 740
    assert folded["height"] < 9 * 740
    assert too_wide(page) == []


# -- Ranking ------------------------------------------------------------------------------------
@pytest.mark.parametrize("width", [360, 1280])
def test_by_dragging(ana: Open, width: int) -> None:
    page = ana(viewport={"width": width, "height": 1600})
    divider = page.locator("#ranking .divider")
    drag(page, B, divider)
    drag(page, "keep", row(page, B))
    drag(page, A, row(page, B))
    assert shown(page) == ["keep 1", f"{A} 2", f"{B} 3"]
    assert too_wide(page) == []
    cast(page)
    assert stored() == [["keep"], [A], [B]]


def test_by_finger(ana: Open) -> None:
    """The page does not scroll away under it."""
    page = ana(viewport={"width": 360, "height": 1600}, has_touch=True, is_mobile=True)
    handle = row(page, C).locator(".handle")
    handle.scroll_into_view_if_needed()
    start, box = handle.bounding_box(), page.locator("#ranking .divider").bounding_box()
    assert start
    assert box
    touch = page.context.new_cdp_session(page)
    x, y = start["x"] + 10, start["y"] + 10
    scrolled = page.evaluate("scrollY")
    for kind, points in (
        ("touchStart", [y]),
        *(("touchMove", [y + (box["y"] - y) * step / 8]) for step in range(1, 9)),
        ("touchEnd", []),
    ):
        found = [{"x": x, "y": at} for at in points]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": found})
    assert shown(page) == [f"{C} 1"]
    assert page.evaluate("scrollY") == scrolled


def test_dragged_below_the_line_it_is_ranked_no_longer(ana: Open) -> None:
    page = ana(viewport={"width": 1280, "height": 1600})
    row(page, A).locator("select").select_option("1")
    row(page, B).locator("select").select_option("2")
    drag(page, A, row(page, C))
    assert shown(page) == [f"{B} 1"]


def test_dragged_between_two_that_are_equal_it_is_equal_too(ana: Open) -> None:
    page = ana(viewport={"width": 1280, "height": 1600})
    for code in (A, B):
        row(page, code).locator("select").select_option("1")
    drag(page, C, row(page, B))
    assert sorted(shown(page)) == sorted([f"{A} 1", f"{B} 1", f"{C} 1"])


def test_by_keyboard(ana: Open) -> None:
    page = ana()
    handle = row(page, C).locator(".handle")
    handle.focus()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#ranking-said")).to_have_text("Magistral-Small-2509: place 1 of 1.")
    expect(handle).to_be_focused()
    row(page, A).locator(".handle").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert shown(page) == [f"{A} 1", f"{C} 2"]
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    assert shown(page) == [f"{C} 1"]
    row(page, "keep").get_by_role("button", name="up").focus()
    page.keyboard.press("Enter")
    assert shown(page) == [f"{C} 1", "keep 2"]
    cast(page)
    assert stored() == [[C], ["keep"]]


def test_numbers_order_the_rows_and_may_be_equal(ana: Open) -> None:
    page = ana()
    row(page, B).locator("select").select_option("1")
    row(page, "keep").locator("select").select_option("1")
    row(page, A).locator("select").select_option("3")
    assert shown(page) == ["keep 1", f"{B} 1", f"{A} 3"]
    cast(page)
    assert stored() == [["keep", B], [A]]


def test_without_scripts_by_numbers(ana: Open) -> None:
    page = ana(java_script_enabled=False)
    expect(page.locator(".handle").first).to_be_hidden()
    row(page, C).locator("select").select_option("2")
    row(page, B).locator("select").select_option("1")
    cast(page)
    assert stored() == [[B], [C]]
    page.get_by_role("button", name="Show my four words").click()
    words = receipts.words(Ballot.objects.get().receipt, "en")
    expect(page.locator("#receipt-words")).to_have_text(words)
    page.reload()
    assert words not in page.content()


def test_what_is_wrong_is_said_where_she_is(ana: Open) -> None:
    page = ana()
    page.click("#ranking-form .actions .button")
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("Rank at least one option. Nothing was stored.")
    expect(alert).to_be_in_viewport()


def test_what_is_stored_is_ordered_when_she_comes_back(ana: Open, vote: Vote) -> None:
    user = User.objects.get(name="Ana")
    ballots.cast(vote=vote, user=user, ranking=[[C], [A]])
    assert shown(ana()) == [f"{C} 1", f"{A} 2"]


def test_the_deadline_where_the_reader_is(ana: Open, vote: Vote) -> None:
    page = ana(timezone_id="America/Bogota")
    own = page.locator("main .own-zone").first
    there = timezone.localtime(vote.closes_at, timezone.get_fixed_timezone(-300))
    expect(own).to_contain_text(f"{there.day} {there:%B %Y, %H:%M}")
    expect(own).to_contain_text("America/Bogota")
    expect(ana(timezone_id="Europe/Madrid").locator("main .own-zone").first).to_be_hidden()


# -- Counting again -----------------------------------------------------------------------------
def closed(vote: Vote, rankings: list[Any]) -> Vote:
    voters = list(User.objects.filter(roll_entries__vote=vote).order_by("pk"))
    for voter, ranking in zip(voters, rankings, strict=False):
        ballots.cast(vote=vote, user=voter, ranking=ranking)
    closing.close(vote=deadline_passes(vote))
    vote.refresh_from_db()
    return vote


def table(page: Page, name: str) -> list[list[str]]:
    return page.eval_on_selector_all(
        f"#{name} tr", "all => all.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )


def test_the_browser_counts_to_the_same_table(ana: Open, vote: Vote) -> None:
    closed(vote, [[["keep", A], [B]], [[B], [C]], [[C], [A]]])
    page = ana("check/")
    page.click("#count")
    expect(page.locator("#said .good")).to_have_text("The same: table, order, quorum and result.")
    assert table(page, "recounted") == table(page, "pairwise")
    assert len(table(page, "pairwise")) == 5
    assert too_wide(page) == []


def test_the_commands_to_count_again_are_whole_on_a_phone(ana: Open, vote: Vote) -> None:
    closed(vote, [[[A]]])
    page = ana("check/")
    hidden = page.eval_on_selector_all(
        ".code pre", "all => all.map(one => one.scrollWidth - one.clientWidth)"
    )
    assert hidden == [0, 0, 0]


def test_it_counts_a_downloaded_file_and_finds_her_receipt(ana: Open, vote: Vote) -> None:
    receipt = receipts.words(closed_with_receipt(vote), "es")
    page = ana("result/")
    for kind in ("CSV", "JSON"):
        with page.expect_download() as download:
            page.get_by_role("link", name=kind, exact=True).click()
        file = download.value.path()
        again = ana("check/")
        again.set_input_files(
            "#file",
            {"name": f"x.{kind}", "mimeType": "text/plain", "buffer": file.read_bytes()},
        )
        expect(again.locator("#said .good")).to_be_visible()
        asked: list[str] = []
        again.on("request", lambda request, asked=asked: asked.append(request.url))
        again.fill("#words", receipt)
        expect(again.locator("#mine")).to_contain_text("It was counted as:")
        again.fill("#words", "one two three four")
        expect(again.locator("#mine")).to_contain_text("No ballot has this receipt.")
        assert asked == []


def closed_with_receipt(vote: Vote) -> int:
    user = User.objects.get(name="Ana")
    ballots.cast(vote=vote, user=user, ranking=[[A], [C]])
    receipt = Ballot.objects.get().receipt
    closed(vote, [])
    return receipt


def test_a_file_that_was_changed_is_seen(ana: Open, vote: Vote) -> None:
    closed(vote, [[["keep"]], [[A]], [[A]]])
    body = "".join(results.as_csv(vote))
    page = ana("check/")
    for changed, words in (
        (body.replace(",,1,,\r\n", ",1,,,\r\n", 1), "Not the same: winner, digest."),
        ("x,y\r\n", "This is no file of published ballots."),
    ):
        assert changed != body
        page.set_input_files(
            "#file", {"name": "x.csv", "mimeType": "text/csv", "buffer": changed.encode()}
        )
        expect(page.locator("#said")).to_contain_text(words)


DOUBTS = """async () => {
    const {doubts} = await import('/static/js/tally.js')
    const ballots = [{receipt: 'w'}, {receipt: 'v'}, {receipt: 'w'}]
    return [doubts({ballots, roll: 2}), doubts({ballots, roll: null}),
        doubts({ballots: ballots.slice(1), roll: 2})]
}"""


def test_the_browser_has_the_doubts_of_the_program(ana: Open, vote: Vote) -> None:
    page = ana("")
    assert page.evaluate(DOUBTS) == [
        {"twice": ["w"], "roll": 2, "ballots": 3},
        {"twice": ["w"], "roll": None, "ballots": 3},
        None,
    ]


MANY = """async ([options, elections]) => {
    const {tally} = await import('/static/js/tally.js')
    return elections.map(([ballots, roll]) => tally({options, ballots, roll, percent: 30}))
}"""


def test_a_thousand_elections_have_one_result_in_both_languages(ana: Open, vote: Vote) -> None:
    """With ties, partial rankings, missed quorums and draws: everything that is decided."""
    chance = random.Random(4)
    options = ["keep", "a/x", "b/y", "c/z", "d/ñ"]
    elections, expected = [], []
    for _ in range(1000):
        cast = [some_ballot(chance, options) for _ in range(chance.randrange(9))]
        roll = chance.randrange(1, 20)
        counted, seed = count(options, [ranking for _, ranking in cast]), digest(cast)
        outcome = decide(counted, seed=seed, roll=roll, percent=30)
        elections.append([[{"receipt": word, "ranking": ranking} for word, ranking in cast], roll])
        expected.append(
            [
                outcome.winner, list(outcome.tied), outcome.tie_rule, outcome.quorum, seed,
                [list(line) for line in counted.pairwise], [list(line) for line in counted.paths],
                [list(level) for level in counted.levels], list(counted.first),
            ]
        )  # fmt: skip
    page = ana("")
    found = page.evaluate(MANY, [options, elections])
    names = ("winner", "tied", "tie_rule", "quorum", "digest", "pairwise", "paths", "levels")
    assert [[one[name] for name in (*names, "first")] for one in found] == expected
    assert {line[2] for line in expected} == {"", "current", "first", "draw"}


def some_ballot(chance: random.Random, options: list[str]) -> tuple[str, list[list[str]]]:
    chosen = chance.sample(options, chance.randrange(len(options) + 1))
    groups: list[list[str]] = []
    for option in chosen:
        if groups and chance.random() < 0.3:
            groups[-1].append(option)
        else:
            groups.append([option])
    return f"word-{chance.randrange(10**9)}", groups
