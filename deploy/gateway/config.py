"""LiteLLM's configuration, rendered from a small settings object. JSON, which is valid YAML.

    python deploy/gateway/config.py --models models.json --output config.json

`models.json` is a list of objects with the fields of `Model`. No secret is ever written: the file
names environment variables, which LiteLLM reads when it starts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

# A connection of LiteLLM's pool is held for a query, not for a call to a model, so ten serve
# hundreds of streams. Whoever sizes Postgres adds this once for each instance.
DATABASE_CONNECTIONS = 10
POOL_WAIT_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class Model:
    """One engine, or the pool in front of several that serve the same model.

    `timeout` is seconds without an answer and `stream_timeout` seconds without the next chunk;
    neither bounds the whole of a stream.
    """

    names: tuple[str, ...]
    engine_name: str
    api_base: str
    max_input_tokens: int
    max_output_tokens: int
    timeout: int = 900
    stream_timeout: int = 300
    api_key_env: str | None = None

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Model:
        known = {field.name for field in fields(cls)}
        if extra := sorted(set(found) - known):
            raise ValueError(
                f"A model has no field {', '.join(extra)}; it has {', '.join(sorted(known))}."
            )
        return cls(**{**found, "names": tuple(found["names"])})


@dataclass(frozen=True, kw_only=True)
class Settings:
    models: tuple[Model, ...]
    database_connections: int = DATABASE_CONNECTIONS


def render(settings: Settings) -> dict[str, Any]:
    """The whole configuration; each line that differs from LiteLLM's default says why."""
    return {
        "model_list": list(_model_list(settings.models)),
        "general_settings": _general(settings),
        "litellm_settings": _litellm(),
        # One 404 of an engine would otherwise take its only deployment away for 5 s, and members
        # would read "No deployments available" as a 429.
        "router_settings": {"disable_cooldowns": True, "num_retries": 0},
    }


def _general(settings: Settings) -> dict[str, Any]:
    return {
        "master_key": "os.environ/LITELLM_MASTER_KEY",
        "database_url": "os.environ/DATABASE_URL",
        "database_connection_pool_limit": settings.database_connections,
        "database_connection_timeout": POOL_WAIT_SECONDS,
        "store_model_in_db": True,  # models come and go at run time, by the API
        "cancel_on_disconnect": True,  # else a caller who gives up keeps her parallel slot
        "disable_spend_logs": True,  # no row for a request; daily totals are kept all the same
        # Failure rows hold the engine's error text, which may hold a prompt.
        "disable_error_logs": True,
        "store_prompts_in_spend_logs": False,
        # An outage of the database must let nobody in: this would invent a user for the caller.
        "allow_requests_on_db_unavailable": False,
    }


def _litellm() -> dict[str, Any]:
    return {
        "turn_off_message_logging": True,
        # Tags are kept with each day's totals. The gate drops the header as well.
        "disable_add_user_agent_to_request_tags": True,
        # Under deploy/gateway/callbacks: what members read in a stream, and what is counted.
        "callbacks": [
            "nan_stream_errors.callback",
            "nan_usage_names.callback",
            "nan_counts.callback",
        ],
        "drop_params": True,  # clients send parameters that an engine doesn't know
        "num_retries": 0,  # the pool decides what may be repeated
        "cache": True,  # shares limits and blocked keys between instances …
        "cache_params": {
            "type": "redis",
            "host": "os.environ/REDIS_HOST",
            "port": "os.environ/REDIS_PORT",
            "password": "os.environ/REDIS_PASSWORD",
            "supported_call_types": [],  # … and never an answer
        },
    }


def _model_list(models: Iterable[Model]) -> Iterable[dict[str, Any]]:
    """One deployment for each public name: each shows in /v1/models and counts its own usage."""
    taken: set[str] = set()
    for model in models:
        if not model.names:
            raise ValueError(f"{model.engine_name} has no public name; members could not call it.")
        for name in model.names:
            if name in taken:
                raise ValueError(
                    f"{name} is the public name of two models; calls would go to either."
                )
            taken.add(name)
            yield _deployment(name, model)


def _deployment(name: str, model: Model) -> dict[str, Any]:
    # hosted_vllm/, because with openai/ a call to /v1/messages reaches the engine as /v1/responses.
    params = {
        "model": f"hosted_vllm/{model.engine_name}",
        "api_base": model.api_base,
        "timeout": model.timeout,
        "stream_timeout": model.stream_timeout,
    }
    if model.api_key_env:
        params["api_key"] = f"os.environ/{model.api_key_env}"
    info = {
        "id": f"file:{name}",
        "mode": "chat",
        "max_tokens": model.max_output_tokens,
        "max_input_tokens": model.max_input_tokens,
        "max_output_tokens": model.max_output_tokens,
    }
    return {"model_name": name, "litellm_params": params, "model_info": info}


def write(settings: Settings, path: Path) -> None:
    """Replaces the file in one step: a starting gateway reads the old or the new one whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(json.dumps(render(settings), indent=2) + "\n")
    draft.replace(path)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--models", type=Path, required=True, help="JSON list of models, `-` for stdin"
    )
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    try:
        text = sys.stdin.read() if str(options.models) == "-" else options.models.read_text()
        models = tuple(Model.from_json(found) for found in json.loads(text))
        write(Settings(models=models), options.output)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"gateway: no configuration written: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
