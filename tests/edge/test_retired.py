"""Names of models that are gone, and rotations, as a client of the API reads them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.edge.conftest import Scene
from tests.edge.errors import answering, anthropic, ask_both, litellm, openai, own_headers

INVALID = (
    "/chat/completions: Invalid model name passed in model={model}. Call `/v1/models` to view "
    "available models for your key."
)


@pytest.fixture
def retired(scene: Scene) -> Iterator[Scene]:
    scene.edge.runtime.set_retired({"qwen-2.5-32b": "nan", "Old/Model": "gpt-oss-120b"})
    yield scene
    scene.edge.runtime.set_retired({})


@pytest.mark.parametrize(("old", "new"), [("qwen-2.5-32b", "nan"), ("Old/Model", "gpt-oss-120b")])
def test_s11_a_retired_name_is_told_with_its_successor(retired: Scene, old: str, new: str) -> None:
    gateway = answering(400, litellm(INVALID.format(model=old), "invalid_request_error", 400))
    text = f"The model '{old}' was retired and no longer runs here. Use '{new}' in its place."
    chat, messages = ask_both(retired, gateway)
    assert (chat.status, chat.json) == (404, openai(text, "invalid_request_error", "model_retired"))
    assert (messages.status, messages.json) == (404, anthropic(text, "not_found_error"))


def test_any_other_unknown_name_stays_unknown(retired: Scene) -> None:
    gateway = answering(400, litellm(INVALID.format(model="qwen"), "invalid_request_error", 400))
    chat, _ = ask_both(retired, gateway)
    assert (chat.status, chat.json["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize("status", [503, 500, 429])
def test_a_slot_that_was_taken_out_is_told_through_the_gateway(scene: Scene, status: int) -> None:
    said = (
        "litellm.ServiceUnavailableError: Hosted_vllmException - The admins have taken this model "
        "out of service: no engine runs. Received Model Group=nan"
    )
    chat, messages = ask_both(scene, answering(status, litellm(said, "None", status)))
    text = chat.json["error"]["message"]
    assert text.startswith(
        "The admins have taken this model out of service: no engine runs. This is not your limit "
        "and nothing was run. What runs now stands at http://127.0.0.1:"
    )
    assert (chat.status, chat.json) == (503, openai(text, "server_error", "model_taken_out"))
    assert (messages.status, messages.json) == (503, anthropic(text, "overloaded_error"))
    assert own_headers(chat) == own_headers(messages) == {"retry-after": "300"}


@pytest.mark.parametrize("status", [503, 500, 429])
def test_a_rotation_reaches_the_client_through_the_gateway(scene: Scene, status: int) -> None:
    said = (
        "litellm.ServiceUnavailableError: Hosted_vllmException - A model rotation is under way "
        "since 14:05 UTC: the new model is still loading. Received Model Group=nan"
    )
    chat, messages = ask_both(scene, answering(status, litellm(said, "None", status)))
    text = (
        "A model rotation is under way since 14:05 UTC: the new model is still loading. This is "
        "not your limit and nothing was run. Try again in 30 seconds."
    )
    assert (chat.status, chat.json) == (503, openai(text, "server_error", "model_rotating"))
    assert (messages.status, messages.json) == (503, anthropic(text, "overloaded_error"))
    assert own_headers(chat) == own_headers(messages) == {"retry-after": "30"}
