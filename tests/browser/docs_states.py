"""Pages of /docs/ in every state that looks different."""

from collections.abc import Iterator

from django.utils import timezone
from playwright.sync_api import Page

from inference.docs.pages import load
from inference.models import CatalogModel, Kind, ProbeResult, ProbeRun, Slot
from members import recipe_votes, recipes
from members.models import Recipe, User
from tests.browser.view import View, click, open_all
from tests.people import applicant, let_in, person

LONG = """## What I did

1. Installed it, then wrote the file.
2. Set `limit.context`, since a-very-long-word-without-any-space-in-it-does-not-wrap-by-itself.

| version | works |
|---|---|
| 2.0.16 | yes |

```json
{"limit": {"context": 1000, "output": 1000, "a-long-line": "that scrolls sideways on phones"}}
```

> And [read this](https://example.org/).
"""


def served() -> Slot:
    model = CatalogModel.objects.create(
        name="qwen3.6-35b-a3b",
        title="Qwen3.6 35B A3B",
        repo="Qwen/Qwen3.6-35B-A3B-FP8",
        revision="0" * 40,
        licence="Apache-2.0",
        weights_mib=1,
        context_length=131_072,
        max_output=32_768,
        capabilities=["tools", "reasoning"],
    )
    Slot.objects.create(name="nan-embed", title="Embeddings", number=2, kind=Kind.EMBEDDING)
    return Slot.objects.create(name="nan", title="Chat", number=1, model=model)


def docs_views(admin: User) -> list[View]:
    slot = served()
    reader, writer = let_in(applicant("Lola"), by=admin), let_in(applicant("Mina"), by=admin)
    _probes(slot)
    _texts(writer, reader, admin)
    return [*_public(), *_of_members(reader, writer, admin)]


def _probes(slot: Slot) -> None:
    for call in ("chat", "stream", "tools", "tools_stream", "message", "messages"):
        ProbeResult.objects.create(slot=slot, model=slot.model, call=call, ok=True)
    for call in ("responses", "responses_tools"):
        ProbeResult.objects.create(
            slot=slot, model=slot.model, call=call, ok=False, code="smoke_events"
        )
    ProbeRun.objects.create(slot=slot, model=slot.model, cause="asked", asked_at=timezone.now())


def _texts(writer: User, reader: User, admin: User) -> None:
    for kind in ("recipe", "problem"):
        text = {"kind": kind, "title": f"A {kind} that helps", "version": "2.0.16", "body": LONG}
        recipe = recipes.write(user=writer, client="opencode", **text)
        recipes.accept(edit=recipe.edits.get().pk, actor=admin)
        for version in ("2.0.16", "2.1.0-beta.3"):
            recipe_votes.vote(recipe=recipe, user=reader, version=version, works=kind == "recipe")
        again = {"title": "A second wording", "version": "2.1.0", "body": LONG}
        recipes.edit(recipe=recipe, user=writer, **again)
    refused = recipes.write(user=writer, client="codex", **text)
    recipes.decline(edit=refused.edits.get().pk, actor=admin, reason="Which version?")


def with_a_key(page: Page) -> None:
    page.fill("main [name=title]", "A key within")
    page.fill("main [name=version]", "2.0.16")
    page.fill("main [name=body]", 'I wrote "apiKey": "sk-9fQ2mXv7LpR4tYw8ZbN3cD" and it works.')
    page.click("main form button[value=save]")


def preview(page: Page) -> None:
    page.click("main form button[value=preview]")
    page.locator("#preview .card").wait_for()


def _public() -> Iterator[View]:
    for query in ("", "?q=zzz", "?q=cache", "?client=terminal&api=responses", "?api=embeddings"):
        yield View(f"docs list {query}", f"/docs/examples/{query}")
    yield View("docs", "/docs/")
    for page in load("es").values():
        where = "/docs/" if page.is_guide else "/docs/examples/"
        yield View(f"docs {page.name}", f"{where}{page.name}/")


def _of_members(reader: User, writer: User, admin: User) -> Iterator[View]:
    recipe = Recipe.objects.order_by("pk")[0]
    yield View("docs with texts", "/docs/examples/opencode/", reader, open_all)
    yield View("docs with texts of hers", "/docs/examples/opencode/", writer)
    yield View("docs works", "/docs/examples/works/", reader)
    yield View("docs works, not a member", "/docs/examples/works/", person("Otilia"))
    yield View("docs write", "/docs/examples/opencode/write/", writer)
    yield View(
        "docs write, refused",
        "/docs/examples/opencode/write/",
        writer,
        click("main form button[value=save]"),
    )
    yield View("docs write, a key", "/docs/examples/opencode/write/", writer, with_a_key)
    yield View("docs edit, preview", f"/docs/texts/{recipe.pk}/edit/", writer, preview)
    yield View("docs edit", f"/docs/texts/{recipe.pk}/edit/", writer)
    yield View("docs history", f"/docs/texts/{recipe.pk}/history/", writer)
    yield View("docs mine", "/docs/texts/", writer)
    yield View("docs mine, none", "/docs/texts/", reader)
    yield View("staff texts", "/staff/recipes/", admin, open_all)
    yield View("staff checks", "/staff/probes/", admin)
