"""The fleet in every state in which a staff page looks different."""

from collections.abc import Iterator
from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page

from inference.models import CatalogModel, FleetEvent, PublicName, Replica, Server, Slot, Swap
from members.models import User
from tests.browser.view import View, click, open_all
from tests.inference.staff import rows

REASON = (
    "ValueError: To serve at least one request with the model's max seq len (131072), 24.0 GiB KV"
    " cache is needed, which is larger than the available KV cache memory (19.27 GiB)."
)


PORT_HELD = {
    "code": "port_taken",
    "detail": "[Errno 98] Address already in use",
    "checks": [],
    "log": ["OSError: [Errno 98] Address already in use"],
}


def fleet_views(admin: User, other: User) -> Iterator[View]:
    slot, replicas, new = rows.small_fleet(3, prefix="atlas")
    yield from server_views(admin, slot, replicas)
    yield from model_views(admin, new)
    yield from swap_views(admin, other, slot.model, new)
    yield from new_swap_views(admin)
    yield View("staff with a fleet", "/staff/", admin)


def server_views(admin: User, slot: Slot, replicas: list[Replica]) -> Iterator[View]:
    atlas, second = replicas[0].server, replicas[2].server
    atlas.report["fetches"] = {
        f"acme/birch@{rows.COMMIT}": {"state": "running", "percent": 41},
        f"acme/cedar@{rows.COMMIT}": {"state": "failed", "code": "disk_short", "detail": "12 GiB"},
        f"acme/elder@{rows.COMMIT}": {"state": "done", "at": timezone.now().timestamp()},
    }
    atlas.gpus[1]["foreign_mib"] = 8_192
    atlas.save()
    Server.objects.filter(pk=second.pk).update(reported_at=timezone.now() - timedelta(hours=2))
    rows.alert("server_silent", server=second)
    soon = timezone.now() + timedelta(days=1)
    waiting = Server.objects.create(name="new-one", seats=10, join_digest="x", join_until=soon)
    down = rows.replica(slot, atlas, state="failed", error_code="kv_cache_too_small", port=8190)
    Replica.objects.filter(pk=down.pk).update(error_detail=REASON)
    rows.alert("replica_down", replica=down)
    left_over = rows.replica(slot, second, state="stopping", goal="off", port=8192)
    loading = rows.replica(slot, atlas, state="starting", instance="r9-g1", port=8191)
    rows.tell(atlas, "r9-g1")
    PublicName.objects.create(
        name="old-model", slot=slot, model=slot.model, retire_at=timezone.now() + timedelta(days=9)
    )
    yield View("staff, servers", "/staff/servers/", admin)
    yield View("staff, server", f"/staff/servers/{atlas.name}/", admin)
    yield View("staff, server silent", f"/staff/servers/{second.name}/", admin)
    yield View("staff, server waiting", f"/staff/servers/{waiting.name}/", admin)
    yield View("staff, server out", f"/staff/servers/{atlas.name}/out/", admin)
    yield View("staff, server kept", f"/staff/servers/{atlas.name}/delete/", admin)
    rows.server("empty-one", gpus=0)
    yield View("staff, server deleted", "/staff/servers/empty-one/delete/", admin)
    FleetEvent.objects.create(what="server_deleted", detail="gpu-9", actor=admin)
    yield View("staff, add a server", "/staff/servers/add/", admin)

    def invite(page: Page) -> None:
        page.fill("[name=name]", "boreas")
        page.click("main form .button")

    yield View("staff, server invited", "/staff/servers/add/", admin, invite)
    yield View("staff, slots", "/staff/slots/", admin)
    yield View("staff, add a slot", "/staff/slots/add/", admin)
    yield View("staff, replica down", f"/staff/replicas/{down.pk}/", admin)
    yield View("staff, replica loading", f"/staff/replicas/{loading.pk}/", admin)
    yield View("staff, replica left over", f"/staff/replicas/{left_over.pk}/", admin)
    yield View("staff, replica out", f"/staff/replicas/{replicas[0].pk}/out/", admin)


def model_views(admin: User, model: CatalogModel) -> Iterator[View]:
    yield View("staff, models", "/staff/models/", admin)
    yield View("staff, model", f"/staff/models/{model.name}/", admin)
    yield View("staff, change a model in use", f"/staff/models/{model.name}/edit/", admin)
    free = rows.catalogue_model("cedar", "Cedar 8B")
    yield View("staff, change a model", f"/staff/models/{free.name}/edit/", admin)

    def refused(page: Page) -> None:
        page.fill("[name=flags]", '{"api-key": "x", "seed": -1}')
        page.fill("[name=config]", "{not json")
        page.click("main form .button:not(.quiet)")

    yield View("staff, model refused", f"/staff/models/{free.name}/edit/", admin, refused)


def swap_views(
    admin: User, other: User, old: CatalogModel | None, new: CatalogModel
) -> Iterator[View]:
    for name, make in SWAPS.items():
        slug = name.split()[0].strip(",")
        slot, replicas, _new = rows.small_fleet(2, name=slug, prefix=slug, old=old)
        swap = make(slot, replicas, new, other)
        yield View(f"staff, swap {name}", f"/staff/swaps/{swap.pk}/", admin, open_all)
    yield View("staff, swaps", "/staff/swaps/", admin)


def planned(slot: Slot, replicas: list[Replica], new: CatalogModel, by: User) -> Swap:
    return rows.swap(slot, new, by, reason="Chosen in the vote of 2026-Q4.")


def preflight(slot: Slot, replicas: list[Replica], new: CatalogModel, by: User) -> Swap:
    since = timezone.now() - timedelta(hours=2)
    Server.objects.filter(pk=replicas[0].server_id).update(reported_at=since)
    return rows.swap(slot, new, by, state="running", waiting_code="server_silent")


def untouched(slot: Slot, replicas: list[Replica], new: CatalogModel, by: User) -> Swap:
    swap = rows.swap(slot, new, by, state="running", waiting_code="others_not_serving")
    preflight_passed(swap, replicas)
    Replica.objects.filter(pk=replicas[1].pk).update(state="failed", error_code="died")
    return swap


def draining(slot: Slot, replicas: list[Replica], new: CatalogModel, by: User) -> Swap:
    swap = rows.swap(slot, new, by, state="running")
    preflight_passed(swap, replicas)
    under_way(swap, replicas[0], "draining", in_flight=3)
    rows.steps(swap, replicas[0], ["draining"], seconds=43)
    return swap


def loading(slot: Slot, replicas: list[Replica], new: CatalogModel, by: User) -> Swap:
    swap = rows.swap(slot, new, by, state="running")
    preflight_passed(swap, replicas)
    under_way(swap, replicas[0], "starting", model=new, instance="r1-g2-v9")
    rows.tell(replicas[0].server, "r1-g2-v9")
    rows.steps(swap, replicas[0], ["draining", "stopping", "starting"], seconds=95)
    return swap


def checking(slot: Slot, replicas: list[Replica], new: CatalogModel, by: User) -> Swap:
    swap = rows.swap(slot, new, by, state="running", paused_at=timezone.now())
    preflight_passed(swap, replicas)
    under_way(swap, replicas[0], "checking", model=new, checks=rows.CHECKS)
    rows.steps(swap, replicas[0], ["draining", "stopping", "starting", "checking"], seconds=12)
    return swap


def watched(slot: Slot, replicas: list[Replica], new: CatalogModel, by: User) -> Swap:
    swap = rows.swap(slot, new, by, state="running")
    preflight_passed(swap, replicas)
    for one in replicas:
        under_way(swap, one, "serving", model=new, checks=rows.CHECKS[:2])
        rows.steps(swap, one, WAY, seconds=20)
    rows.part(swap, replicas[0], "done")
    rows.part(swap, replicas[1], "watched", state_since=timezone.now() - timedelta(seconds=150))
    late = {"verdict": {"state": "suspect", "code": "watch_behind"}}
    Replica.objects.filter(pk=replicas[1].pk).update(watch=late)
    return swap


def failed(slot: Slot, replicas: list[Replica], new: CatalogModel, by: User) -> Swap:
    swap = rows.swap(
        slot,
        new,
        by,
        state="failed",
        error_code="kv_cache_too_small",
        error_detail=REASON,
        error_step="start",
    )
    preflight_passed(swap, replicas)
    rows.steps(swap, replicas[0], ["draining", "stopping", "starting"], seconds=300)
    rows.steps(swap, replicas[0], ["stopping"], seconds=290, detail="kv_cache_too_small")
    rows.steps(swap, replicas[0], ["starting", "checking", "joining", "serving"], seconds=30)
    rows.part(swap, replicas[0], "restored")
    rows.alert("swap_failed", swap=swap, detail="kv_cache_too_small")
    return swap


def left_down(slot: Slot, replicas: list[Replica], new: CatalogModel, by: User) -> Swap:
    """The old model's engine failed as well; it serves again by now, and a later swap is open."""
    swap = failed(slot, replicas, new, by)
    rows.part(swap, replicas[0], "down", log=[REASON], left_down=PORT_HELD)
    rows.swap(slot, new, by)
    return swap


def smoke(slot: Slot, replicas: list[Replica], new: CatalogModel, by: User) -> Swap:
    lost = {"name": "tools", "ok": False, "code": "smoke_tool_call_lost", "detail": ""}
    failure = {"error_code": lost["code"], "error_step": "smoke"}
    swap = rows.swap(slot, new, by, state="failed", **failure)
    preflight_passed(swap, replicas)
    rows.part(swap, replicas[0], "down", checks=[*rows.CHECKS[:2], lost])
    return swap


def done(slot: Slot, replicas: list[Replica], new: CatalogModel, by: User) -> Swap:
    swap = rows.swap(slot, new, by, state="done")
    preflight_passed(swap, replicas)
    for one in replicas:
        rows.steps(swap, one, WAY, seconds=20)
        rows.part(swap, one, "done")
        Replica.objects.filter(pk=one.pk).update(model=new, goal_model=new)
    return swap


def refused(slot: Slot, replicas: list[Replica], new: CatalogModel, by: User) -> Swap:
    swap = rows.swap(
        slot, new, by, state="failed", error_code="parser_unknown", error_step="preflight"
    )
    check = {"name": "parsers", "ok": False, "code": "parser_unknown", "detail": "qwen9_coder"}
    rows.part(swap, replicas[0], "waiting", preflight=[check])
    return swap


WAY = ["draining", "stopping", "starting", "checking", "joining", "serving"]
SWAPS = {
    "planned": planned,
    "preflight": preflight,
    "draining": draining,
    "loading": loading,
    "checking, paused": checking,
    "watched": watched,
    "untouched": untouched,
    "failed": failed,
    "left down": left_down,
    "smoke test failed": smoke,
    "refused": refused,
    "done": done,
}


def preflight_passed(swap: Swap, replicas: list[Replica]) -> None:
    checks = [{"name": name, "ok": True, "code": "", "detail": ""} for name in ("weights", "port")]
    for one in replicas:
        rows.part(swap, one, "waiting", preflight=checks)


def under_way(swap: Swap, one: Replica, state: str, **fields: object) -> None:
    since = timezone.now() - timedelta(seconds=43)
    Replica.objects.filter(pk=one.pk).update(
        state=state, swap=swap, state_since=since, goal_model=swap.to_model, **fields
    )
    rows.part(swap, one, "changing")


def new_swap_views(admin: User) -> Iterator[View]:
    yield View("staff, new swap", "/staff/swaps/new/", admin)
    yield View("staff, swap preview", "/staff/swaps/new/?slot=nan&model=birch", admin)
    yield View("staff, swap preview, open", "/staff/swaps/new/?slot=draining&model=birch", admin)
    oak = rows.catalogue_model("oak", "Oak 30B", flags={"pipeline-parallel-size": 2})
    yield View("staff, model, flags not followed", "/staff/models/oak/", admin)
    rows.measurement(oak, Replica.objects.filter(slot__name="nan")[0].server)
    yield View("staff, swap preview, measured", "/staff/swaps/new/?slot=nan&model=oak", admin)
    rows.small_fleet(1, name="alone", prefix="alone", old=CatalogModel.objects.get(name="alder"))
    rows.catalogue_model("giant", "Giant 480B", weights_mib=400_000, capabilities=[])
    yield View("staff, swap preview, gap", "/staff/swaps/new/?slot=alone&model=giant", admin)

    bare = rows.slot("bare", CatalogModel.objects.get(name="alder"))
    yield View(
        "staff, swap preview, nobody", f"/staff/swaps/new/?slot={bare.name}&model=birch", admin
    )

    def late(page: Page) -> None:
        page.fill("[name=start_at]", "2001-01-01T10:00")
        click("main section form .button:not(.quiet)")(page)

    yield View("staff, swap, late", "/staff/swaps/new/?slot=alone&model=birch", admin, late)
