"""Ready-to-paste examples: with the key where it is shown, once, and with a placeholder after."""

from typing import NamedTuple

from django.conf import settings
from django.utils.translation import gettext as _

from inference.names.shown import Shown, shown

PLACEHOLDER = "YOUR_KEY"


class Example(NamedTuple):
    id: str
    title: str
    note: str
    code: str


def filled(key: str, model: Shown | None = None) -> list[Example]:
    """With this key, the gateway's address, the slot's name and what its model can take."""
    model = model or shown()
    values = {
        "KEY": key,
        "URL": settings.API_URL,
        "MODEL": model.name,
        "OUTPUT": str(model.short_output),
        "LIMIT": _limit(model),
    }
    return [
        Example("curl", _("curl, OpenAI's dialect"), "", _fill(CURL_CHAT, values)),
        Example("curl-messages", _("curl, Anthropic's dialect"), "", _fill(CURL_MESSAGES, values)),
        Example(
            "opencode",
            "opencode",
            _("In opencode.json in your project, or in ~/.config/opencode/."),
            _fill(OPENCODE, values),
        ),
        Example(
            "claude-code",
            "Claude Code",
            _("In the shell from which you start it."),
            _fill(CLAUDE_CODE, values),
        ),
        Example("openai", _("Python, package openai"), "", _fill(OPENAI, values)),
        Example("anthropic", _("Python, package anthropic"), "", _fill(ANTHROPIC, values)),
    ]


def _limit(model: Shown) -> str:
    """For opencode, which otherwise doesn't know when to shorten a conversation."""
    if not model.context:
        return ""
    return f', "limit": {{"context": {model.context}, "output": {model.output}}}'


def _fill(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"<{name}>", value)
    return text.strip()


CURL_CHAT = """
curl <URL>/v1/chat/completions \\
  -H "Authorization: Bearer <KEY>" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "<MODEL>", "messages": [{"role": "user", "content": "Hello"}]}'
"""

CURL_MESSAGES = """
curl <URL>/v1/messages \\
  -H "x-api-key: <KEY>" \\
  -H "anthropic-version: 2023-06-01" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "<MODEL>", "max_tokens": 256, "messages": [{"role": "user", "content": "Hello"}]}'
"""

OPENCODE = """
{
  "$schema": "https://opencode.ai/config.json",
  "provider": {
    "nan": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "NaN",
      "options": {"baseURL": "<URL>/v1", "apiKey": "<KEY>"},
      "models": {"<MODEL>": {"name": "NaN"<LIMIT>}}
    }
  },
  "model": "nan/<MODEL>"
}
"""

# The attribution header changes with every call and would defeat the engine's prefix cache.
CLAUDE_CODE = """
export ANTHROPIC_BASE_URL=<URL>
export ANTHROPIC_AUTH_TOKEN=<KEY>
export ANTHROPIC_MODEL=<MODEL>
export ANTHROPIC_DEFAULT_OPUS_MODEL=<MODEL>
export ANTHROPIC_DEFAULT_SONNET_MODEL=<MODEL>
export ANTHROPIC_DEFAULT_HAIKU_MODEL=<MODEL>
export CLAUDE_CODE_MAX_OUTPUT_TOKENS=<OUTPUT>
export CLAUDE_CODE_ATTRIBUTION_HEADER=0
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
claude
"""

OPENAI = """
from openai import OpenAI

client = OpenAI(base_url="<URL>/v1", api_key="<KEY>")
answer = client.chat.completions.create(
    model="<MODEL>", messages=[{"role": "user", "content": "Hello"}]
)
print(answer.choices[0].message.content)
"""

ANTHROPIC = """
from anthropic import Anthropic

client = Anthropic(base_url="<URL>", auth_token="<KEY>")
answer = client.messages.create(
    model="<MODEL>", max_tokens=256, messages=[{"role": "user", "content": "Hello"}]
)
print(answer.content[0].text)
"""
