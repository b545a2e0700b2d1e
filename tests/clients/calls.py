"""Which of the calls that are probed a request is, by what it asks for."""

from typing import Any

_CHAT = {
    (False, False): "chat",
    (True, False): "stream",
    (False, True): "tools",
    (True, True): "tools_stream",
}
_MESSAGES = {
    (False, False): "message",
    (True, False): "messages",
    (False, True): "message_tools",
    (True, True): "messages_tools",
}
_RESPONSES = {
    (False, False): "responses",
    (True, False): "responses_stream",
    (False, True): "response_tools",
    (True, True): "responses_tools",
}
_BY_PATH = {
    "/v1/chat/completions": _CHAT,
    "/v1/messages": _MESSAGES,
    "/v1/responses": _RESPONSES,
}
_OTHERS = {"/v1/messages/count_tokens": "count_tokens", "/v1/embeddings": "embedding"}


def call_of(path: str, body: dict[str, Any]) -> str:
    """ "" for what is no call to a model. A name that no probe has is a call that none makes."""
    if path not in _BY_PATH:
        return _OTHERS.get(path, "")
    asked = bool(body.get("stream")), bool(body.get("tools"))
    if _BY_PATH[path] is _CHAT:
        if '"image_url"' in repr(body).replace("'", '"'):
            return "vision"
        if (body.get("chat_template_kwargs") or {}).get("enable_thinking"):
            return "reasoning_stream" if asked[0] else "reasoning"
    return _BY_PATH[path][asked]
