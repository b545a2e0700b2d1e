"""The catalogue's pages: what is shown, what is refused, that nothing typed is lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from inference.fleet import catalogue
from inference.models import CatalogModel, FleetEvent, PublicName, Slot
from members.models import User
from tests.inference.staff import rows
from tests.inference.staff.pages import html
from tests.people import signed_in

pytestmark = pytest.mark.django_db
CONFIGS = Path(__file__).parent.parent / "fit" / "configs.json"

GOOD: dict[str, Any] = {
    "name": "birch-27b",
    "title": "Birch 27B",
    "kind": "chat",
    "repo": "acme/Birch-27B-FP8",
    "revision": rows.COMMIT,
    "licence": "Apache-2.0",
    "config": json.dumps(rows.CONFIG),
    "weights_mib": "28000",
    "context_length": "131072",
    "max_output": "32768",
    "capabilities": ["tools", "reasoning"],
    "gpus_needed": "1",
    "memory_mib": "90000",
    "flags": '{"tool-call-parser": "hermes", "enable-auto-tool-choice": true}',
    "environment": "{}",
    "load_seconds": "900",
    "offered": "on",
}


def as_data(text: str) -> Any:
    """JSON is laid out anew; what is none stays to the letter."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def test_add_and_change(admin: User) -> None:
    client = signed_in(admin)
    assert client.post("/staff/models/add/", GOOD)["Location"] == "/staff/models/birch-27b/"
    model = CatalogModel.objects.get()
    assert (model.flags["tool-call-parser"], model.config) == ("hermes", rows.CONFIG)
    assert model.capabilities == ["tools", "reasoning"]
    changed = {**GOOD, "name": "other", "context_length": "65536"}
    client.post("/staff/models/birch-27b/edit/", changed)
    model.refresh_from_db()
    assert (model.name, model.context_length) == ("birch-27b", 65_536)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "Birch 27B", "lower-case letters"),
        ("name", "add", "Choose another"),
        ("repo", "https://huggingface.co/acme/birch", "owner/name"),
        ("revision", "main", "A full commit"),
        ("config", "{not json", "This is not JSON. Nothing was saved"),
        ("config", "[1]", "This must be a JSON object"),
        ("flags", "{'a': 1}", "This is not JSON. Nothing was saved"),
        ("flags", '{"api-key": "x"}', "api-key is not a flag that servers accept."),
        ("flags", '{"seed": -1}', "seed can&#x27;t be -1."),
        (
            "flags",
            '{"speculative-config": {"method": "eagle3", "model": "acme/draft"}}',
            "speculative-config can&#x27;t have a model: draft weights",
        ),
        ("flags", '{"max-model-len": 1}', "max-model-len comes from the fields of this form."),
        ("environment", '{"LD_PRELOAD": "x"}', "LD_PRELOAD=x is not allowed."),
        (
            "environment",
            '{"VLLM_CPU_KVCACHE_SPACE": ""}',
            "VLLM_CPU_KVCACHE_SPACE= is not allowed.",
        ),
        ("capabilities", ["flight"], "flight"),
        ("max_output", "200000", "longer than the context"),
        ("memory_mib", "0", "how much must be free"),
        ("kind", "embedding", "has none of these"),
        ("load_seconds", "5", "10"),
        ("config", '{"num_hidden_layers": -1}', "num_hidden_layers must be a whole number"),
        ("config", '{"hidden_size": 10000001}', "hidden_size must be a whole number from 0 to"),
        ("config", '{"text_config": {"head_dim": 1.5}}', "text_config.head_dim must be a whole"),
        ("config", '{"vocab_size": "many"}', "vocab_size must be a whole number"),
        ("config", '{"vision_config": []}', "vision_config must be an object"),
        ("weights_mib", "100000001", "100000000"),
    ],
)
def test_what_is_refused_comes_back_as_it_was_typed(
    field: str, value: Any, said: str, admin: User
) -> None:
    answer = signed_in(admin).post("/staff/models/add/", {**GOOD, field: value})
    assert answer.status_code == 422
    assert CatalogModel.objects.count() == 0
    page = html(answer)
    assert said in page.replace("&quot;", '"')
    form = answer.context["form"]
    assert {name: form[name].value() for name in ("title", "licence")} == {
        "title": "Birch 27B",
        "licence": "Apache-2.0",
    }
    if field in ("config", "flags", "environment"):
        assert as_data(form[field].value()) == as_data(value)


HOSTILE = (
    '{"a": "\\u0000"}',
    '{"\\u0000": 1}',
    '{"a": "\\ud800"}',
    '{"a": NaN}',
    '{"a": [1e400]}',
    '{"a": -Infinity}',
    '{"a": ' + "9" * 5000 + "}",
    '{"a": ' + "[" * 900 + "]" * 900 + "}",
    '{"a": ' + "[" * 60_000 + "]" * 60_000 + "}",
)


@pytest.mark.parametrize("field", ["config", "flags", "environment"])
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_json_that_no_row_can_hold(field: str, text: str, admin: User) -> None:
    client = signed_in(admin)
    answer = client.post("/staff/models/add/", {**GOOD, field: text})
    assert (answer.status_code, CatalogModel.objects.count()) == (422, 0)
    assert "Something in this JSON can&#x27;t be stored" in html(answer)
    form = answer.context["form"]
    assert (form[field].value(), form["title"].value()) == (text, "Birch 27B")
    read = {**GOOD, field: text, "action": "read"}
    assert client.post("/staff/models/add/", read).status_code == 200


def test_real_configurations_are_not_refused(admin: User) -> None:
    client = signed_in(admin)
    for n, config in enumerate(json.loads(CONFIGS.read_text()).values()):
        sent = {**GOOD, "name": f"m{n}", "config": json.dumps(config)}
        assert client.post("/staff/models/add/", sent).status_code == 302


def test_a_model_does_not_get_a_name_that_reaches_a_slot(admin: User) -> None:
    rows.slot("nan", rows.catalogue_model("alder"))
    client = signed_in(admin)
    for name in ("nan", "alder-nan"):
        answer = client.post("/staff/models/add/", {**GOOD, "name": name})
        assert (answer.status_code, "A slot answers to this name already" in html(answer)) == (
            422,
            True,
        )
    PublicName.objects.create(
        name="oak", slot=Slot.objects.get(), model=rows.catalogue_model("oak")
    )
    form = client.get("/staff/models/oak/edit/").context["form"]
    shown = {field.name: field.value() for field in form if field.value() is not None}
    assert client.post("/staff/models/oak/edit/", shown).status_code == 302


def test_added_once_by_a_button_pressed_twice(admin: User) -> None:
    client = signed_in(admin)
    for _ in range(2):
        assert client.post("/staff/models/add/", GOOD)["Location"] == "/staff/models/birch-27b/"
    assert CatalogModel.objects.count() == 1
    assert FleetEvent.objects.filter(what="model_added").count() == 1
    other = client.post("/staff/models/add/", {**GOOD, "title": "Another"})
    assert (other.status_code, CatalogModel.objects.get().title) == (422, GOOD["title"])


def test_the_help_says_which_memory_is_taken(admin: User) -> None:
    client = signed_in(admin)
    page = html(client.get("/staff/models/add/"))
    assert "Without a GPU: 0, then nothing is checked." in page
    assert "0: nothing is checked" not in page
    none = {**GOOD, "memory_mib": "0"}
    refused = client.post("/staff/models/add/", none)
    assert (refused.status_code, "this must be more than 0" in html(refused)) == (422, True)
    assert client.post("/staff/models/add/", {**none, "gpus_needed": "0"}).status_code == 302


def test_all_wrong_flags_are_named_at_once(admin: User) -> None:
    flags = '{"seed": -1, "host": "0.0.0.0", "dtype": "bfloat16"}'
    page = html(signed_in(admin).post("/staff/models/add/", {**GOOD, "flags": flags}))
    assert "seed can&#x27;t be -1." in page
    assert "host is not a flag that servers accept." in page
    assert "dtype can" not in page


def test_fill_in_from_a_pasted_config(admin: User) -> None:
    config = {"text_config": {"max_position_embeddings": 262_144}, "vision_config": {}}
    half = {"name": "cedar", "config": json.dumps(config), "action": "read"}
    answer = signed_in(admin).post("/staff/models/add/", half)
    form = answer.context["form"]
    assert (form["context_length"].value(), form["name"].value()) == ("262144", "cedar")
    assert form["capabilities"].value() == ["vision"]
    assert "errorlist" not in html(answer)
    assert CatalogModel.objects.count() == 0
    answer = signed_in(admin).post("/staff/models/add/", {**half, "config": "nonsense"})
    assert "Nothing could be read from it" in html(answer)
    assert answer.context["form"]["config"].value() == "nonsense"


def test_where_it_fits(admin: User) -> None:
    rows.server("big")
    rows.server("bare", gpus=0)
    rows.catalogue_model("small")
    rows.catalogue_model("giant", weights_mib=400_000)
    rows.catalogue_model("vectors", kind="embedding", gpus_needed=0, capabilities=[], config={})
    found = {
        row.model.name: [place.server.name for place in row.fitting]
        for row in signed_in(admin).get("/staff/models/").context["rows"]
    }
    assert found == {"small": ["big"], "giant": [], "vectors": ["bare", "big"]}
    page = html(signed_in(admin).get("/staff/models/giant/"))
    assert ("does not fit" in page, "too few GPUs" in page) == (True, True)
    assert "the figures are an estimate from the model" in page


def test_offered_or_not(admin: User) -> None:
    rows.catalogue_model("alder")
    client = signed_in(admin)
    client.post("/staff/models/alder/offer/", {"offered": "no"})
    assert not CatalogModel.objects.get().offered
    assert "not offered" in html(client.get("/staff/models/"))
    client.post("/staff/models/alder/offer/", {"offered": "yes"})
    assert CatalogModel.objects.get().offered


@pytest.mark.parametrize("engine", catalogue.FIRST)
def test_each_shipped_model_can_be_saved_as_its_page_shows_it(engine: str, admin: User) -> None:
    client = signed_in(admin)
    for entry in catalogue.read(catalogue.FIRST[engine]):
        model = catalogue.add(entry)
        stored = {**model.flags, "max-model-len": 4096}  # as older catalogues had it
        CatalogModel.objects.filter(pk=model.pk).update(flags=stored)
        address = f"/staff/models/{model.name}/edit/"
        form = client.get(address).context["form"]
        shown = {field.name: field.value() for field in form if field.value() is not None}
        answer = client.post(address, shown)
        assert (model.name, answer.status_code) == (model.name, 302)
        assert CatalogModel.objects.get(pk=model.pk).flags == entry["flags"]
        assert "max-model-len" not in entry["flags"]
