"""What the key page tells members to write, and what it can take."""

import json
from collections.abc import Callable

import pytest

from inference import examples
from inference.docs.values import reading
from inference.models import CatalogModel, Key, Slot
from inference.names.shown import Shown, shown
from members.models import User
from tests.inference.names.conftest import Fleet, model
from tests.inference.staff import rows
from tests.people import signed_in

pytestmark = pytest.mark.django_db


def test_the_slot_of_the_settings_is_shown(fleet: Fleet, new: CatalogModel) -> None:
    fleet.slot.number = 2
    fleet.slot.save()
    Slot.objects.create(name="talk", title="Talk", number=1, model=new)
    assert shown() == Shown("nan", "Old-One", context=100_000, output=30_000)


def test_else_the_first_slot_for_chat(embedding: Slot, new: CatalogModel) -> None:
    Slot.objects.create(name="talk", title="Talk", number=3, model=new)
    assert shown() == Shown("talk", "New-One", context=50_000, output=50_000)


def test_before_there_is_a_model_the_name_is_known(db: None) -> None:
    assert shown() == Shown("nan")
    Slot.objects.create(name="nan", title="Chat", number=1)
    assert shown() == Shown("nan")


def test_the_key_page_follows_a_swap(
    member: User, make_key: Callable[[User], Key], fleet: Fleet, new: CatalogModel
) -> None:
    make_key(member)
    rows.replica(fleet.slot, rows.server("gpu-7"))
    browser = signed_in(member)
    page = " ".join(browser.get("/key/").content.decode().split())
    assert "Old-One answers for now. Context: 100,000 tokens; longest answer: 30,000." in page
    fleet.swap(new)
    page = " ".join(browser.get("/key/").content.decode().split())
    assert "New-One answers for now. Context: 50,000 tokens; longest answer: 50,000." in page


def code(page: str) -> str:
    now = reading()
    return next(each.code for each in examples.filled("sk-x", now) if each.source.page == page)


def test_d4_examples_fit_the_served_context(fleet: Fleet) -> None:
    assert '"limit": {"context": 100000, "output": 30000}' in code("opencode-1")
    env = json.loads(code("claude-code"))["env"]
    assert env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "8192"
    assert env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "100000"
    fleet.swap(model("tiny", context_length=4_096, max_output=2_048))
    env = json.loads(code("claude-code"))["env"]
    assert env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "2048"
    assert env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "4096"


def test_without_a_model_the_key_page_says_so(
    member: User, make_key: Callable[[User], Key]
) -> None:
    make_key(member)
    assert '"limit": {"context": UNKNOWN, "output": UNKNOWN}' in code("opencode-1")
    assert "No model runs at the moment." in signed_in(member).get("/key/").content.decode()
