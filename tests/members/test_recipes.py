"""Members' recipes: review, history; keys refused; who may see and change what."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from members import personal_data, recipe_votes, recipes
from members.models import Application, Recipe, RecipeEdit, RecipeVote, User
from tests.pages.markup import faults, words
from tests.people import signed_in

pytestmark = pytest.mark.django_db
KEY = "sk-9fQ2mXv7LpR4tYw8ZbN3cD"
TEXT = {
    "kind": "problem",
    "title": "Compaction never starts",
    "version": "2.0.16",
    "body": "Set `limit.context`.\n\n[more](https://a.example/)\n\n<script>alert(1)</script>",
}
PAGE = "/docs/examples/opencode/"


@pytest.fixture
def mara(member: User) -> Client:
    return signed_in(member)


def written(user: User, **changes: Any) -> Recipe:
    return recipes.write(user=user, client="opencode", **{**TEXT, **changes})


def published(user: User, admin: User, **changes: Any) -> Recipe:
    recipe = written(user, **changes)
    recipes.accept(edit=recipe.edits.get().pk, actor=admin)
    recipe.refresh_from_db()
    return recipe


def test_from_writing_to_reading(mara: Client, other_member: User, admin: User) -> None:
    answer = mara.post(f"{PAGE}write/", {**TEXT, "action": "save"})
    assert (answer.status_code, answer["Location"]) == (302, "/docs/texts/")
    page = signed_in(other_member).get(PAGE).content.decode()
    assert "Compaction never starts" not in page
    staff = signed_in(admin)
    queue = staff.get("/staff/recipes/")
    assert (queue.status_code, faults(queue, language="en")) == (200, [])
    assert "Compaction never starts" in queue.content.decode()
    edit = RecipeEdit.objects.get()
    staff.post(f"/staff/recipes/{edit.pk}/", {"action": "accept"})
    answer = signed_in(other_member).get(PAGE)
    page = answer.content.decode()
    assert faults(answer, language="en") == []
    assert "Compaction never starts" in page
    assert '<a href="https://a.example/" rel="nofollow noopener">more</a>' in page
    assert "<script>alert" not in page
    assert "mara@example.org" not in page


@pytest.mark.parametrize("field", ["title", "version", "body"])
def test_a_key_is_refused_with_a_hint_and_kept_nowhere(mara: Client, field: str) -> None:
    """D2."""
    text = f"Use {KEY} in the file, that works"[: 40 if field == "version" else 200]
    answer = mara.post(f"{PAGE}write/", {**TEXT, field: text, "action": "save"})
    page = answer.content.decode()
    assert (answer.status_code, faults(answer, language="en")) == (422, [])
    assert "looks like an API key" in page
    assert "beginning with sk-9…" in page
    assert page.count(KEY) <= 1  # in the field that she sent, to be changed there
    assert not Recipe.objects.exists()


@pytest.mark.parametrize("field", ["title", "version", "body"])
def test_a_preview_tells_of_a_key_and_does_not_show_it(mara: Client, field: str) -> None:
    text = f"Use {KEY} in the file, that works"[: 40 if field == "version" else 200]
    answer = mara.post(f"{PAGE}write/", {**TEXT, field: text, "action": "preview"})
    page = answer.content.decode()
    preview = page[page.index('id="preview"') :]
    assert (answer.status_code, faults(answer, language="en")) == (200, [])
    assert "beginning with sk-9…" in preview
    assert KEY not in preview
    assert not Recipe.objects.exists()


@pytest.mark.parametrize(
    "written",
    [
        f"{KEY[:8]}**{KEY[8:16]}**{KEY[16:]}",
        f"{KEY[:8]}`{KEY[8:]}`",
        f"[{KEY[:9]}](https://a.example/)[{KEY[9:]}](https://b.example/)",
        f"{KEY[:8]}~~{KEY[8:16]}~~{KEY[16:]}",
        f"{KEY[:8]}&#{ord(KEY[8])};{KEY[9:]}",
    ],
)
def test_a_key_with_markdown_in_its_middle_is_one(mara: Client, written: str) -> None:
    for action, status in (("save", 422), ("preview", 200)):
        answer = mara.post(f"{PAGE}write/", {**TEXT, "body": written, "action": action})
        assert answer.status_code == status
        assert "beginning with sk-9…" in answer.content.decode()
    assert not Recipe.objects.exists()


def test_a_text_that_is_sent_again_waits_once(mara: Client) -> None:
    for _ in range(2):
        assert mara.post(f"{PAGE}write/", {**TEXT, "action": "save"}).status_code == 302
    assert Recipe.objects.count() == 1
    mara.post(f"{PAGE}write/", {**TEXT, "title": "Another title", "action": "save"})
    assert Recipe.objects.count() == 2


def test_a_text_that_shows_nothing_is_refused_and_stays_in_the_form(mara: Client) -> None:
    answer = mara.post(f"{PAGE}write/", {**TEXT, "body": ">" * 40, "action": "save"})
    assert answer.status_code == 422
    assert "Nothing of this text would show." in answer.content.decode()
    assert "&gt;" * 40 in answer.content.decode()
    assert not Recipe.objects.exists()


def test_a_key_is_refused_in_edits_and_votes_too(
    member: User, other_member: User, admin: User
) -> None:
    recipe = published(member, admin)
    with pytest.raises(recipes.Refused):
        recipes.edit(recipe=recipe, user=member, title="A title", version="1", body=KEY)
    with pytest.raises(recipes.Refused):
        recipe_votes.vote(recipe=recipe, user=other_member, version=KEY, works=True)
    assert (recipe.edits.count(), RecipeVote.objects.count()) == (1, 0)


def test_preview_shows_what_it_will_be_and_keeps_nothing(mara: Client) -> None:
    answer = mara.post(f"{PAGE}write/", {**TEXT, "action": "preview"})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "<code>limit.context</code>" in page
    assert "<script>alert" not in page
    assert not Recipe.objects.exists()


def test_an_edit_waits_and_the_published_text_stays(
    member: User, mara: Client, admin: User
) -> None:
    recipe = published(member, admin)
    for title in ("Second wording", "Third wording"):
        mara.post(f"/docs/texts/{recipe.pk}/edit/", {**TEXT, "title": title, "action": "save"})
    states = list(recipe.edits.order_by("pk").values_list("title", "state"))
    assert states == [
        ("Compaction never starts", "accepted"),
        ("Second wording", "replaced"),
        ("Third wording", "pending"),
    ]
    assert "Compaction never starts" in mara.get(PAGE).content.decode()
    newest = recipe.edits.get(state="pending")
    recipes.accept(edit=newest.pk, actor=admin)
    page = mara.get(PAGE).content.decode()
    assert ("Third wording" in page, "Compaction never starts" in page) == (True, False)


def seen(page: str) -> str:
    (mark,) = re.findall(r'name="seen" value="(\w*)"', page)
    return str(mark)


def test_the_older_of_two_tabs_saves_over_nothing(
    member: User, mara: Client, admin: User, other_member: User
) -> None:
    """It is refused with what she typed; having been shown what was saved, she may."""
    recipe = published(member, admin)
    path = f"/docs/texts/{recipe.pk}/edit/"
    opened = seen(mara.get(path).content.decode())
    first = {**TEXT, "title": "From the first tab", "seen": opened, "action": "save"}
    assert mara.post(path, first).status_code == 302
    second = {**TEXT, "title": "From the second tab", "seen": opened}
    preview = mara.post(path, {**second, "action": "preview"}).content.decode()
    assert seen(preview) == opened  # looking at it is not seeing the other
    answer = mara.post(path, {**second, "action": "save"})
    page = answer.content.decode()
    assert (answer.status_code, faults(answer, language="en")) == (422, [])
    assert "Somebody saved this text after you opened it" in page
    assert 'value="From the second tab"' in page
    assert "From the first tab" in page
    assert recipe.edits.get(state="pending").title == "From the first tab"
    again = {**second, "seen": seen(page), "action": "save"}
    assert mara.post(path, again).status_code == 302
    assert recipe.edits.get(state="pending").title == "From the second tab"


def test_what_an_admin_saved_meanwhile_is_not_saved_over_either(member: User, admin: User) -> None:
    recipe = published(member, admin)
    mark = recipes.mark(recipe)
    text = {"version": "1", "body": "Set it up like this, and it works."}
    recipes.edit(recipe=recipe, user=admin, title="An admin's words", seen=mark, **text)
    with pytest.raises(recipes.ChangedMeanwhile):
        recipes.edit(recipe=recipe, user=member, title="Her words", seen=mark, **text)


def test_a_text_withdrawn_meanwhile_gives_back_what_she_typed(
    member: User, mara: Client, admin: User
) -> None:
    recipe = published(member, admin)
    path = f"/docs/texts/{recipe.pk}/edit/"
    opened = seen(mara.get(path).content.decode())
    recipes.withdraw(recipe=recipe)
    answer = mara.post(path, {**TEXT, "title": "My new title", "seen": opened, "action": "save"})
    page = answer.content.decode()
    assert (answer.status_code, 'value="My new title"' in page) == (422, True)
    assert "This text was withdrawn" in page
    assert mara.get(path).status_code == 404
    again = mara.post(f"/docs/texts/{recipe.pk}/withdraw/", follow=True)
    assert "This text was withdrawn." in again.content.decode()


def test_lists_say_of_which_client_which_kind_and_which_version(
    member: User, mara: Client, admin: User
) -> None:
    recipes.write(user=member, client="claude-code", **TEXT)
    hers = words(mara.get("/docs/texts/").content.decode())
    assert "Claude Code known problem Compaction never starts" in hers
    assert "With version 2.0.16" in hers
    queue = words(signed_in(admin).get("/staff/recipes/").content.decode())
    assert "known problem Claude Code With version 2.0.16 ·" in queue
    for page in (hers, queue):
        assert "claude-code" not in page


def test_a_text_outlives_the_page_of_its_client(member: User, mara: Client, admin: User) -> None:
    recipe = published(member, admin)
    Recipe.objects.update(client="gone")
    for path in ("", f"{recipe.pk}/edit/", f"{recipe.pk}/history/"):
        answer = mara.get(f"/docs/texts/{path}")
        assert (answer.status_code, faults(answer, language="en")) == (200, [])
    recipes.edit(recipe=recipe, user=member, title="Other", version="1", body="y" * 30)
    assert "gone" in words(signed_in(admin).get("/staff/recipes/").content.decode())


def test_history_shows_others_what_was_published_only(
    member: User, other_member: User, admin: User
) -> None:
    recipe = published(member, admin)
    recipes.edit(recipe=recipe, user=member, title="Not yet", version="3", body="x" * 30)
    path = f"/docs/texts/{recipe.pk}/history/"
    theirs, hers = signed_in(other_member).get(path), signed_in(member).get(path)
    assert faults(theirs, language="en") == faults(hers, language="en") == []
    assert "Not yet" not in theirs.content.decode()
    assert "Not yet" in hers.content.decode()


def test_two_admins_decide_once(member: User, admin: User, other_admin: User) -> None:
    edit = written(member).edits.get()
    recipes.decline(edit=edit.pk, actor=admin, reason="Which version of Node?")
    with pytest.raises(recipes.Refused):
        recipes.accept(edit=edit.pk, actor=other_admin)
    edit.refresh_from_db()
    assert (edit.state, edit.decided_by) == ("declined", admin)
    page = signed_in(member).get("/docs/texts/")
    assert faults(page, language="en") == []
    assert "Which version of Node?" in page.content.decode()


def test_declining_needs_a_reason(member: User, admin: User) -> None:
    edit = written(member).edits.get()
    page = signed_in(admin).post(f"/staff/recipes/{edit.pk}/", {"action": "decline"}, follow=True)
    assert "Write a reason" in page.content.decode()
    edit.refresh_from_db()
    assert edit.state == "pending"


def test_only_its_author_and_admins_change_or_withdraw(
    member: User, other_member: User, admin: User
) -> None:
    recipe = published(member, admin)
    stranger = signed_in(other_member)
    edit, withdraw = f"/docs/texts/{recipe.pk}/edit/", f"/docs/texts/{recipe.pk}/withdraw/"
    assert stranger.get(edit).status_code == 404
    assert stranger.post(edit, {**TEXT, "action": "save"}).status_code == 404
    assert stranger.post(withdraw).status_code == 404
    assert signed_in(admin).get(edit).status_code == 200
    assert signed_in(member).post(withdraw).status_code == 302
    assert "Compaction" not in signed_in(other_member).get(PAGE).content.decode()
    assert stranger.get(f"/docs/texts/{recipe.pk}/history/").status_code == 404
    assert stranger.post(f"/docs/texts/{recipe.pk}/vote/", {"version": "1"}).status_code == 404


def test_a_version_that_is_none_is_refused(mara: Client, member: User) -> None:
    answer = mara.post(f"{PAGE}write/", {**TEXT, "version": "the newest", "action": "save"})
    assert answer.status_code == 422
    assert "A version is a number, such as 2.0.16" in answer.content.decode()
    assert not Recipe.objects.exists()
    assert written(member, version="v2.0.16").edits.get().version == "2.0.16"


def test_an_author_without_a_name_is_a_member(
    member: User, other_member: User, admin: User
) -> None:
    recipe = published(member, admin)
    for change in ({"name": ""}, None):
        if change is None:
            member.delete()
        else:
            User.objects.filter(pk=member.pk).update(**change)
        for path in (PAGE, f"/docs/texts/{recipe.pk}/history/"):
            page = words(signed_in(other_member).get(path).content.decode())
            assert "With version 2.0.16; a member, " in page


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/docs/examples/works/"),
        ("get", "/docs/texts/"),
        ("get", "/docs/examples/opencode/write/"),
        ("post", "/docs/texts/{pk}/vote/"),
        ("get", "/docs/texts/{pk}/edit/"),
        ("get", "/docs/texts/{pk}/history/"),
    ],
)
def test_others_are_kept_out(
    member: User, admin: User, outsider: User, waiting: Application, method: str, path: str
) -> None:
    path = path.format(pk=published(member, admin).pk)
    assert getattr(Client(), method)(path).status_code == 302
    for person in (outsider, waiting.user):
        assert getattr(signed_in(person), method)(path).status_code == 403


def test_review_is_for_admins(member: User, outsider: User) -> None:
    edit = written(member).edits.get()
    for person in (member, outsider):
        assert signed_in(person).get("/staff/recipes/").status_code == 403
        answer = signed_in(person).post(f"/staff/recipes/{edit.pk}/", {"action": "accept"})
        assert answer.status_code == 403
    assert Client().get("/staff/recipes/").status_code == 302
    edit.refresh_from_db()
    assert edit.state == "pending"


def test_signed_out_readers_see_the_page_without_the_texts(member: User, admin: User) -> None:
    published(member, admin)
    page = Client(headers={"accept-language": "en"}).get(PAGE)
    assert page.status_code == 200
    assert "Compaction" not in page.content.decode()


def test_ten_may_wait(member: User) -> None:
    for number in range(recipes.PENDING_MOST):
        written(member, title=f"Text number {number}")
    with pytest.raises(recipes.Refused):
        written(member)


def test_a_page_costs_the_same_however_many_texts(
    member: User, other_member: User, mara: Client, admin: User
) -> None:
    published(member, admin)
    mara.get(PAGE)
    with CaptureQueriesContext(connection) as first:
        mara.get(PAGE)
    for number in range(4):
        recipe = published(member, admin, title=f"Text number {number}")
        recipe_votes.vote(recipe=recipe, user=other_member, version=str(number), works=True)
    with CaptureQueriesContext(connection) as more:
        mara.get(PAGE)
    assert len(more) == len(first)


def test_the_queue_costs_the_same_however_many_wait(member: User, admin: User) -> None:
    written(member)
    client = signed_in(admin)
    client.get("/staff/recipes/")
    with CaptureQueriesContext(connection) as first:
        client.get("/staff/recipes/")
    for _ in range(3):
        written(member)
    with CaptureQueriesContext(connection) as more:
        client.get("/staff/recipes/")
    assert len(more) == len(first)


def test_she_can_take_her_texts_with_her(member: User, other_member: User, admin: User) -> None:
    published(member, admin)
    theirs = published(other_member, admin)
    recipe_votes.vote(recipe=theirs, user=member, version="1", works=True)
    data = personal_data.export(user=member)
    assert [edit["title"] for edit in data["texts"]] == ["Compaction never starts"]
    assert [vote["version"] for vote in data["text_votes"]] == ["1"]
