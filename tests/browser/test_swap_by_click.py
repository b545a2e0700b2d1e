"""A swap as two admins do it in their browsers, while members go on calling."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Route, expect

from tests.api import ApiClient, GatewayAdmin
from tests.browser.window import Open, Window, at
from tests.fleet import Fleet
from tests.journeys.conftest import HOME
from tests.load import Load
from tests.stack import Stack
from tests.visitor import admin
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(400)
# Seconds, so that a page that asks every 2 s shows each step.
DRAINING = 4
LOADING = 6

WATCH = """
window.same = true;
window.said = [];
const said = document.getElementById("swap-said");
const cards = [...document.querySelectorAll("[id^=replica-]")];
const note = () => window.said.push([said, ...cards].map((part) => part.innerText).join("\\n"));
new MutationObserver(note).observe(document.body, {childList: true, subtree: true});
note();
"""
"""Keeps what a page has said, as long as nobody loads it anew."""


@dataclass(frozen=True, kw_only=True)
class Move:
    old: str
    new: str
    title: str
    """Of the page: what moves to what."""


@pytest.fixture
def fleet(stack: Stack) -> Iterator[Fleet]:
    found = Fleet(stack)
    found.go_home(HOME)
    yield found
    found.go_home(HOME)  # others count on what it can do
    found.close()


@pytest.fixture
def key(stack: Stack) -> str:
    """Made before the new name exists, without a member's limits."""
    return str(GatewayAdmin(stack).make(key_alias="by-click")["key"])


# -- Chapters -------------------------------------------------------------------------------------
def propose(alma: Window, move: Move) -> int:
    """In Spanish. She reads what will happen first."""
    alma.open("/staff/swaps/")
    alma.follow("Nuevo cambio")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    alma.page.route("**/staff/swaps/new/?*choosing*", hold)
    alma.page.select_option("#id_slot", "nan")
    expect(alma.page.locator("#id_model")).to_be_disabled()  # its models are on their way
    held[0].continue_()
    alma.page.select_option("#id_model", move.new)
    alma.press("Previsualizar")
    alma.sees("Sin hueco: se cambia una réplica tras otra y las demás siguen sirviendo.")
    alma.sees("Esto es lo que ocurriría. Aún no ha cambiado nada.")
    alma.fill(watch_seconds="6", drain_minutes="1", reason="Lee formularios.")
    alma.press("Proponerlo")
    alma.sees("Otra persona de la administración lo tiene que aprobar antes de que cambie nada.")
    expect(alma.page.locator("#do-approve")).to_have_count(0)
    return int(alma.page.url.rstrip("/").rpartition("/")[2])


def approve(bruno: Window, swap: int) -> None:
    """With a double click, and again on a page that was open before it."""
    bruno.open("/staff/swaps/")
    bruno.follow(str(swap))
    bruno.sees("Another admin has to approve it before anything changes.")
    late = Window(bruno.context, bruno.stack)
    late.page.route("**/now?*", lambda route: route.abort())  # it hears nothing of the first
    late.open(f"/staff/swaps/{swap}/")
    bruno.page.locator("#do-approve").dblclick()
    bruno.sees("You ha")  # "have approved it", or "had already": whichever click came last
    late.page.locator("#do-approve").click()
    late.sees("You had approved it already.")
    late.page.close()


def pause_and_resume(bruno: Window, fleet: Fleet, swap: int) -> None:
    """The replica under way is finished, and the next is not begun before he says so."""
    bruno.press("Pause")
    bruno.sees("Told to pause. The replica under way is finished first.")
    bruno.sees("Paused:")
    bruno.sees("1 of 2", seconds=90)
    parts = [state for _, state in fleet.swap(swap)["parts"]]
    bruno.page.wait_for_timeout(6000)  # more than the fleet's pass and the page need
    assert [state for _, state in fleet.swap(swap)["parts"]] == parts == ["done", "waiting"]
    bruno.sees("1 of 2")
    bruno.press("Resume")
    bruno.sees("It goes on.")


def has_told_all(alma: Window, move: Move) -> None:
    """Her page, which she has not touched since she proposed it."""
    expect(alma.page.locator("#swap-said")).to_have_text(
        "Hecho. El puesto pasó al modelo nuevo.", timeout=120_000
    )
    assert alma.page.evaluate("window.same") is True
    told = "\n".join(alma.page.evaluate("window.said"))
    missing = [
        word
        for word in (
            "vaciándose",
            "en marcha.",
            "arrancando",
            "cargando pesos",
            "en prueba",
            "sirve el modelo nuevo y está en observación",
            "En pausa:",
        )
        if word not in told
    ]
    assert missing == []
    expect(alma.page.locator("#live")).to_have_count(0)
    expect(alma.page.locator("main h1")).to_contain_text(move.title)


def every_name_answers(stack: Stack, key: str, move: Move) -> None:
    names = {move.old, move.new, "nan"}
    reader = ApiClient(stack.api, key)

    def listed() -> bool:
        return names <= {model["id"] for model in reader.models().json()["data"]}

    wait_until(listed, seconds=15, what="the new name, which is published when the swap is done")
    answers = {name: ApiClient(stack.api, key, model=name).call().status_code for name in names}
    assert answers == dict.fromkeys(names, 200)


# -- The story ------------------------------------------------------------------------------------
def test_a_swap_by_click_under_load(window: Open, stack: Stack, fleet: Fleet, key: str) -> None:
    old, new = fleet.model(), fleet.other_model()
    title = fleet.ask(f"' → '.join(str(CatalogModel.objects.get(name=n)) for n in {[old, new]!r})")
    move = Move(old=old, new=new, title=title)
    alma = at(window, admin(stack, language="es"), locale="es")
    bruno = at(window, admin(stack))
    with (
        fleet.faults({new: {"load_seconds": LOADING}}),
        fleet.slow_to_answer(new, ms=200),  # or the page may look just before and just after
        Load(stack.api, key, tokens=200, sleep=DRAINING) as load,
    ):
        swap = propose(alma, move)
        alma.page.evaluate(WATCH)
        approve(bruno, swap)
        fleet.until_step(swap, "draining")
        pause_and_resume(bruno, fleet, swap)
        has_told_all(alma, move)
        bruno.sees("Done. The slot moved to the new model.")
        every_name_answers(stack, key, move)
    assert load.bad == []
    assert len(load.calls) > 15
    happened = [what for what, _, _, _ in fleet.swap(swap)["events"]]
    assert [happened.count(what) for what in ("approved", "paused", "resumed")] == [1, 1, 1]
    assert [happened.count(what) for what in ("draining", "stopping", "starting")] == [2, 2, 2]
