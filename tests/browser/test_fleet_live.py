"""The page of a swap while it moves: what is open stays open, the focus stays, and it ends."""

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from inference.models import Replica, Server, Swap
from tests.browser.chromium import Complaints
from tests.browser.test_pages import session
from tests.inference.staff import rows
from tests.people import staff

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(browser: Browser, live_server: LiveServer) -> Page:
    context = browser.new_context(locale="en")
    cookie = {"name": "session", "value": session(staff("Alma")), "url": live_server.url}
    context.add_cookies([cookie])
    return context.new_page()


def test_a_swap_updates_by_itself(page: Page, live_server: LiveServer) -> None:
    complaints = Complaints(page)
    slot, replicas, new = rows.small_fleet(2)
    one, server = replicas[0], Server.objects.get()
    swap = rows.swap(slot, new, staff("Bruna"), state="running")
    rows.part(swap, one, "changing")
    Replica.objects.filter(pk=one.pk).update(state="draining", swap=swap, in_flight=3)
    rows.steps(swap, one, ["draining"])
    page.goto(f"{live_server.url}/staff/swaps/{swap.pk}/")
    expect(page.locator(f"#replica-{one.pk}")).to_contain_text("3 requests still run.")
    page.locator(f"#log-of-{one.pk} summary").click()
    page.locator("#do-pause").focus()

    Replica.objects.filter(pk=one.pk).update(state="starting", model=new, instance="r1-g2-v9")
    rows.tell(server, "r1-g2-v9")
    rows.steps(swap, one, ["starting"], seconds=1)
    expect(page.locator(f"#replica-{one.pk}")).to_contain_text("loading weights · 41 %")
    expect(page.locator("#swap-said")).to_have_text(f"{one}: starting.")
    expect(page.locator(f"#log-{one.pk}")).to_contain_text("checkpoint shards")
    assert page.locator(f"#log-of-{one.pk}").get_attribute("open") is not None
    assert page.evaluate("document.activeElement.id") == "do-pause"

    Swap.objects.filter(pk=swap.pk).update(state="done", finished_at=timezone.now())
    expect(page.locator("#swap-said")).to_have_text("Done. The slot moved to the new model.")
    expect(page.locator("#live")).to_have_count(0)
    expect(page.locator("#do-pause")).to_have_count(0)
    assert page.locator(f"#log-of-{one.pk}").get_attribute("open") is not None
    assert complaints.take() == []


def test_a_new_server_turns_up_by_itself(page: Page, live_server: LiveServer) -> None:
    page.goto(f"{live_server.url}/staff/servers/add/")
    page.fill("[name=name]", "boreas")
    page.click("main form .button")
    expect(page.locator("h1")).to_have_text("Connect boreas")
    Server.objects.filter(name="boreas").update(
        reported_at=timezone.now(), joined_at=timezone.now(), gpus=[], engine="vllm 0.33.0"
    )
    expect(page.locator("h1")).to_have_text("boreas")
    expect(page.locator("#server-now")).to_contain_text("vllm 0.33.0")


def test_the_models_follow_the_slot(page: Page, live_server: LiveServer) -> None:
    complaints = Complaints(page)
    rows.small_fleet(1)
    rows.slot("vec", rows.catalogue_model("vectors", kind="embedding"), kind="embedding")
    rows.catalogue_model("other-vectors", "Other vectors", kind="embedding")
    page.goto(f"{live_server.url}/staff/swaps/new/")
    expect(page.locator("#id_model option")).to_have_text(["Birch 27B"])
    page.locator("#id_slot").focus()
    page.select_option("#id_slot", "vec")
    expect(page.locator("#id_model option")).to_have_text(["Other vectors"])
    assert page.evaluate("document.activeElement.id") == "id_slot"
    page.click("main form .button:not(.quiet)")
    expect(page).to_have_url(f"{live_server.url}/staff/swaps/new/?slot=vec&model=other-vectors")
    assert complaints.take() == []


def test_without_a_script_reloading_shows_the_same(
    browser: Browser, live_server: LiveServer
) -> None:
    slot, _replicas, new = rows.small_fleet(1)
    swap = rows.swap(slot, new, staff("Bruna"))
    context = browser.new_context(locale="en", java_script_enabled=False)
    cookie = {"name": "session", "value": session(staff("Alma")), "url": live_server.url}
    context.add_cookies([cookie])
    page = context.new_page()
    page.goto(f"{live_server.url}/staff/swaps/{swap.pk}/")
    page.click("#do-approve")
    expect(page.locator("#swap-said")).to_contain_text("Approved. It is about to start.")
    Swap.objects.filter(pk=swap.pk).update(state="running", started_at=timezone.now())
    page.click("text=Reload")
    expect(page.locator("#swap-said")).to_contain_text("Nothing has been touched.")
    page.click("#do-abort")
    expect(page.locator("#swap-said")).to_contain_text("Aborting:")
    context.close()
