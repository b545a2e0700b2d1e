"""Which clients run without a screen, at which version, and how each is asked for one answer."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

SAID = "hola"
PROMPT = f"reply with exactly: {SAID}"
GREETING = "simulated engine"
"""Of what the simulator answers to the programs of the pages."""
SYSTEM = "system"
NO_LITELLM_CALLS = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}


@dataclass(frozen=True, kw_only=True)
class Client:
    page: str
    registry: str
    packages: tuple[str, ...]
    """`name==version` or `name@version`; the first is the one that the page names. Of the system's
    own programs the name: whichever version is there."""
    files: Mapping[str, str]
    """The page's code by its label, and where it goes below the home folder."""
    argv: tuple[str, ...]
    """Begins with a program of the packages; ~ is the home folder."""
    before: tuple[str, ...] = ()
    """Beginnings of commands that the page shows, to be run first."""
    environment: Mapping[str, str] = field(default_factory=dict)
    expects: str = SAID
    times: int = 1
    """How often it must say so."""

    @property
    def package(self) -> str:
        return self.split[0]

    @property
    def version(self) -> str:
        return self.split[1]

    @property
    def split(self) -> tuple[str, str]:
        if self.registry == SYSTEM:
            return self.packages[0], _version_of(self.packages[0])
        name, _at, version = self.packages[0].rpartition("==" if self.registry == "pypi" else "@")
        return name, version


@cache
def _version_of(program: str) -> str:
    run = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"\d+(\.\d+)+", run.stdout)
    return found[0] if found else "unknown"


def _pypi(page: str, *packages: str, **more: Any) -> Client:
    return Client(page=page, registry="pypi", packages=packages, **more)


def _npm(page: str, *packages: str, **more: Any) -> Client:
    return Client(page=page, registry="npm", packages=packages, **more)


def _programs(interpreter: str, *files: str) -> dict[str, Any]:
    line = " && ".join(f'{interpreter} "$HOME/{file}" && echo' for file in files)
    return {
        "files": {file: file for file in files},
        "argv": ("sh", "-c", line),
        "expects": GREETING,
        "times": len(files),
    }


CLIENTS: tuple[Client, ...] = (
    Client(
        page="curl",
        registry=SYSTEM,
        packages=("curl",),
        files={"hello.sh": "hello.sh", "messages.sh": "messages.sh", "curl": "others.sh"},
        argv=("sh", "-e", "-c", ". ~/hello.sh; . ~/messages.sh; . ~/others.sh"),
        expects=GREETING,
        times=3,  # chat, messages, responses; what is streamed comes word by word
    ),
    _pypi(
        "openai-python",
        "openai==3.57.0",
        **_programs("python", "hello_openai.py", "stream_openai.py", "responses_openai.py"),
    ),
    _pypi("anthropic-sdk", "anthropic==2.14.0", **_programs("python", "hello_anthropic.py")),
    _pypi("langchain", "langchain-openai==1.7.4", **_programs("python", "hello_langchain.py")),
    _pypi(
        "llm",
        "llm==0.36",
        files={"extra-openai-models.yaml": ".config/io.datasette.llm/extra-openai-models.yaml"},
        before=("llm keys set",),
        argv=("llm", "-m", "nan", PROMPT),
    ),
    _pypi(
        "aider",
        "aider-chat==0.86.2",
        files={
            ".aider.conf.yml": ".aider.conf.yml",
            ".aider.model.metadata.json": ".aider.model.metadata.json",
        },
        argv=("aider", "--yes-always", "--no-git", "--message", PROMPT),
        environment=NO_LITELLM_CALLS,
    ),
    _npm(
        "openai-js",
        "openai@7.59.0",
        **_programs("node", "hello-openai.mjs", "stream-openai.mjs", "responses-openai.mjs"),
    ),
    _npm("anthropic-sdk", "@anthropic-ai/sdk@1.14.0", **_programs("node", "hello-anthropic.mjs")),
    _npm(
        "ai-sdk",
        "ai@7.0.173",
        "@ai-sdk/openai-compatible@3.0.92",
        **_programs("node", "hello-ai-sdk.mjs"),
    ),
    _npm(
        "opencode-1",
        "opencode-ai@1.18.33",
        files={"opencode.json": ".config/opencode/opencode.json"},
        argv=("opencode", "run", PROMPT),
        environment={
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
        },
    ),
    _npm(
        "claude-code",
        "@anthropic-ai/claude-code@2.1.332",
        files={"settings.json": ".claude/settings.json"},
        argv=("claude", "-p", PROMPT),
        expects=GREETING,  # it wraps the prompt, so the simulator does not see what was asked
    ),
    _npm(
        "codex",
        "@openai/codex@0.171.0",
        files={"config.toml": ".codex/config.toml"},
        argv=("codex", "exec", "--skip-git-repo-check", PROMPT),
    ),
    _npm(
        "qwen-code",
        "@qwen-code/qwen-code@0.24.4",
        files={"settings.json": ".qwen/settings.json"},
        argv=("qwen", "-p", PROMPT),
    ),
    _npm(
        "kilo",
        "@kilocode/cli@7.7.7",
        files={"kilo.json": ".config/kilo/kilo.json"},
        argv=("kilo", "run", "--auto", PROMPT),
        environment={"KILO_TELEMETRY_LEVEL": "off"},
    ),
    _npm(
        "continue",
        "@continuedev/cli@1.5.47",
        files={"config.yaml": ".continue/config.yaml"},
        argv=("cn", "--config", "~/.continue/config.yaml", "-p", PROMPT),
    ),
    _npm(
        "cline",
        "cline@3.0.65",
        files={},
        before=("cline auth",),
        argv=("cline", PROMPT),
    ),
)
