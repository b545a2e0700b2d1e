"""Models come and go at run time; members' keys need no change."""

from inference.deployment import Deployment
from tests.gateway.client import Gateway, Member, Models


def test_a_key_made_before_calls_a_model_added_later(alice: Member, models: Models) -> None:
    """S5."""
    name = f"{models.prefix}-later"
    assert alice.chat(name).status_code == 400
    assert models.add_one(name, "plain").status_code == 200
    assert alice.chat(name).status_code == 200
    assert name in [model["id"] for model in alice.get("/v1/models").json()["data"]]
    assert models.gateway.post("/model/delete", id=name).status_code == 200
    assert alice.chat(name).status_code == 400


def test_one_engine_answers_to_two_names(alice: Member, models: Models) -> None:
    """S11: during a rotation the stable name and the model's own."""
    second = f"{models.prefix}-alias"
    models.add_one(second, "plain")
    for route in ("/v1/chat/completions", "/v1/messages", "/v1/responses"):
        assert alice.call(route, second).status_code == 200
        assert alice.call(route, models["plain"]).status_code == 200
    models.gateway.post("/model/delete", id=second)


def test_an_id_is_unique(models: Models) -> None:
    """The repeat of an added model is told by this, not by a second deployment."""
    assert models.add_one(models["plain"], "plain").status_code == 500


def test_deleting_an_unknown_model_fails(gateway: Gateway) -> None:
    assert gateway.post("/model/delete", id="never-added").status_code == 400


def deployment(models: Models, name: str, *, mode: str = "chat") -> Deployment:
    """As the product publishes a model."""
    return Deployment(
        id=name,
        name=name,
        engine_name="fake-plain",
        api_base=f"{models.engine}/v1",
        mode=mode,
        max_input_tokens=65_536,
        max_output_tokens=8192,
        site="tests",
    )


def test_codex_finds_the_size_of_our_context(alice: Member, models: Models) -> None:
    """Its `model_catalog_url` is `/v1/models`, which it asks for in its own format."""
    name, vectors = f"{models.prefix}-codex", f"{models.prefix}-codex-vectors"
    published = [deployment(models, name), deployment(models, vectors, mode="embedding")]
    for each in published:
        assert models.gateway.post("/model/new", **each.body()).status_code == 200
    answer = alice.get("/v1/models", client_version="0.171.0")
    assert answer.status_code == 200
    found = {model["slug"]: model for model in answer.json()["models"]}
    assert {key: found[name][key] for key in ("slug", "context_window", "supported_in_api")} == {
        "slug": name,
        "context_window": 65_536,
        "supported_in_api": True,
    }
    assert vectors not in found  # nothing for an agent to talk to
    plain = alice.get("/v1/models").json()
    assert {name, vectors} <= {model["id"] for model in plain["data"]}
    for each in published:
        models.gateway.post("/model/delete", id=each.id)
