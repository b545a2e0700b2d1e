"""Keys for those who run the place: commands and admin pages."""

import json
import re
import threading
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import Settings

from inference import keys, provisioning
from inference.errors import WORDS, words
from inference.models import Key, KeyEvent, KeyHolder, Reconciliation, Server
from members.models import User
from tests.fakes.gateway import MASTER_KEY, FakeGateway
from tests.inference.conftest import advance, live
from tests.people import person, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("client_of_fake")]
Maker = Callable[[User], Key]


def run(*arguments: str) -> Any:
    out = StringIO()
    call_command(*arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_keys_list(member: User, make_key: Maker) -> None:
    key = make_key(member)
    make_key(person("Pia"))
    [row] = run("keys", "list", member.email)
    assert (row["id"], row["member"], row["state"]) == (str(key.id), member.email, "active")
    assert (row["rpm"], row["parallel"], row["hint"]) == (100, 5, key.hint)
    assert len(run("keys", "list")) == 2


def test_keys_revoke(member: User, make_key: Maker) -> None:
    make_key(member)
    told = run("keys", "revoke", member.email, "--reason", "found in a gist")
    assert told == {"member": member.email, "pending_at_gateway": True}
    advance(member)
    assert live(member) == []
    assert KeyEvent.objects.get(what="revoked").reason == "found in a gist"


@pytest.mark.django_db(transaction=True)
def test_keys_rotate_prints_the_new_key_once(
    member: User, make_key: Maker, fake: FakeGateway
) -> None:
    make_key(member)
    stop = threading.Event()

    def worker() -> None:
        while not stop.wait(0.1):
            provisioning.advance(member.public_id)
        connection.close()

    thread = threading.Thread(target=worker)
    thread.start()
    try:
        told = run("keys", "rotate", member.email, "--at-once")
    finally:
        stop.set()
        thread.join()
    assert fake.admits(told["key"])
    assert len(fake.keys) == 1


def test_keys_reconcile(
    member: User, make_key: Maker, fake: FakeGateway, settings: Settings
) -> None:
    make_key(member)
    settings.LITELLM_MASTER_KEY = ""
    with pytest.raises(CommandError, match="LITELLM_MASTER_KEY is not set here"):
        run("keys", "reconcile")
    settings.LITELLM_MASTER_KEY = MASTER_KEY
    told = run("keys", "reconcile")
    assert (told["ours"], told["theirs"], told["drift"]) == (1, 1, 0)
    fake.stop()
    with pytest.raises(CommandError, match="can't be read now"):
        run("keys", "reconcile")


def test_commands_name_what_is_wrong(member: User) -> None:
    with pytest.raises(CommandError, match="Nobody here has the address"):
        run("keys", "revoke", "nobody@example.org")
    with pytest.raises(CommandError, match="no working key"):
        run("keys", "rotate", member.email)


def test_servers_carry_seats(db: None) -> None:
    assert run("servers", "list") == []
    [added] = run("servers", "add", "gpu-9", "--seats", "50")
    assert (added["name"], added["seats"], added["active"]) == ("gpu-9", 50, True)
    run("servers", "add", "gpu-9", "--seats", "60")
    assert [(row["name"], row["seats"]) for row in run("servers", "list")] == [("gpu-9", 60)]


@pytest.fixture
def rows(member: User, admin: User, make_key: Maker) -> None:
    make_key(member)
    keys.hold(user=member, actor=admin, reason="abuse")
    advance(member)
    Reconciliation.objects.create(orphans=1)


MODELS = [KeyHolder, Key, KeyEvent, Reconciliation, Server]


@pytest.mark.parametrize("model", MODELS)
def test_admin_pages_are_for_staff(
    rows: None, model: type[Model], admin: User, outsider: User
) -> None:
    address = reverse(f"admin:inference_{model._meta.model_name}_changelist")
    assert signed_in(admin).get(address).status_code == 200
    assert signed_in(outsider).get(address).status_code in (302, 403)
    detail = reverse(
        f"admin:inference_{model._meta.model_name}_change",
        args=[model.objects.first().pk],
    )
    assert signed_in(admin).get(detail).status_code == 200


@pytest.mark.parametrize("model", [KeyHolder, Key, KeyEvent])
def test_admin_lists_cost_the_same_at_three_rows(
    rows: None, model: type[Model], admin: User, make_key: Maker
) -> None:
    browser = signed_in(admin)
    address = reverse(f"admin:inference_{model._meta.model_name}_changelist")
    browser.get(address)
    before = queries(browser, address)
    for name in ("Pia", "Rosa"):
        make_key(person(name))
    assert queries(browser, address) == before


def queries(browser: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert browser.get(address).status_code == 200
    return len(captured)


def test_admin_changes_no_key_by_hand(rows: None, admin: User) -> None:
    browser = signed_in(admin)
    key = Key.objects.get()
    address = reverse("admin:inference_key_change", args=[key.pk])
    assert browser.post(address, {"state": "active"}).status_code == 403
    assert browser.post(reverse("admin:inference_key_delete", args=[key.pk])).status_code == 403


def test_admin_does_not_show_what_belongs_to_the_machinery(rows: None, admin: User) -> None:
    """The public half and the holder's lease are nobody's business."""
    page = signed_in(admin).get(reverse("admin:inference_key_change", args=[Key.objects.get().pk]))
    assert "public_key" not in page.content.decode()


def test_every_code_has_words_for_both() -> None:
    """Every code that the sources raise is in the catalogue; members never read of hosts."""
    fleet = ("pool", "engine")  # their codes have words in inference.fleet.words
    files = [path for path in Path("inference").glob("*.py") if not path.stem.startswith(fleet)]
    source = "".join(path.read_text() for path in files)
    raised = set(re.findall(r'(?:Unavailable|Refused)\(\s*"([a-z_]+)"', source))
    raised |= {"internal", "lost", "refused", "alias_taken", "reveal_unavailable", "name_taken"}
    assert raised - {"not_found"} == set(WORDS)
    for code in WORDS:
        member, operator = words(code)
        assert str(member) != str(operator)
        assert not {"GATEWAY_URL", "LITELLM", "Redis", "log"} & set(str(member).split())
