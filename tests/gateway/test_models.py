"""Models come and go at run time; members' keys need no change."""

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
