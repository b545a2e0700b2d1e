import json
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.gateway import config
from tests.gateway import parts

MODEL = config.Model(
    names=("nan", "qwen3"),
    engine_name="Qwen/Qwen3-8B",
    api_base="http://127.0.0.1:8090/v1",
    max_input_tokens=131_072,
    max_output_tokens=32_768,
    timeout=600,
    stream_timeout=120,
    api_key_env="ENGINE_API_KEY",
)


def test_every_public_name_is_a_deployment_of_its_own() -> None:
    listed = config.render(config.Settings(models=(MODEL,)))["model_list"]
    params = {
        "model": "hosted_vllm/Qwen/Qwen3-8B",
        "api_base": "http://127.0.0.1:8090/v1",
        "timeout": 600,
        "stream_timeout": 120,
        "api_key": "os.environ/ENGINE_API_KEY",
    }
    info = {
        "mode": "chat",
        "max_tokens": 32_768,
        "max_input_tokens": 131_072,
        "max_output_tokens": 32_768,
    }
    assert listed == [
        {"model_name": "nan", "litellm_params": params, "model_info": {"id": "file:nan", **info}},
        {
            "model_name": "qwen3",
            "litellm_params": params,
            "model_info": {"id": "file:qwen3", **info},
        },
    ]


def test_what_the_product_relies_on_is_set() -> None:
    found = config.render(config.Settings(models=()))
    general, litellm = found["general_settings"], found["litellm_settings"]
    assert {name: general[name] for name in general if isinstance(general[name], bool)} == {
        "store_model_in_db": True,
        "cancel_on_disconnect": True,
        "disable_spend_logs": True,
        "disable_error_logs": True,
        "store_prompts_in_spend_logs": False,
        "allow_requests_on_db_unavailable": False,
    }
    assert (
        litellm["turn_off_message_logging"],
        litellm["disable_add_user_agent_to_request_tags"],
        litellm["drop_params"],
        litellm["num_retries"],
    ) == (True, True, True, 0)
    assert (litellm["cache"], litellm["cache_params"]["supported_call_types"]) == (True, [])
    assert found["router_settings"] == {"disable_cooldowns": True, "num_retries": 0}


def test_secrets_are_names_of_environment_variables() -> None:
    found = config.render(config.Settings(models=(MODEL,)))
    secrets = {
        found["general_settings"]["master_key"],
        found["general_settings"]["database_url"],
        found["litellm_settings"]["cache_params"]["password"],
    }
    assert secrets == {
        "os.environ/LITELLM_MASTER_KEY",
        "os.environ/DATABASE_URL",
        "os.environ/REDIS_PASSWORD",
    }


@pytest.mark.parametrize("names", [("nan", "nan"), ()])
def test_public_names_are_unique_and_there_is_one(names: tuple[str, ...]) -> None:
    model = config.Model(
        names=names, engine_name="m", api_base="x", max_input_tokens=1, max_output_tokens=1
    )
    with pytest.raises(ValueError, match="public name"):
        config.render(config.Settings(models=(model,)))


def render_file(tmp_path: Path, models: object) -> subprocess.CompletedProcess[str]:
    source = tmp_path / "models.json"
    source.write_text(json.dumps(models))
    command = [
        sys.executable,
        parts.DEPLOY / "config.py",
        "--models",
        source,
        "--output",
        tmp_path / "config.json",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_command_writes_what_render_says(tmp_path: Path) -> None:
    given = {
        "names": ["nan"],
        "engine_name": "m",
        "api_base": "u",
        "max_input_tokens": 2,
        "max_output_tokens": 1,
    }
    assert render_file(tmp_path, [given]).returncode == 0
    model = config.Model.from_json(given)
    assert json.loads((tmp_path / "config.json").read_text()) == config.render(
        config.Settings(models=(model,))
    )


def test_command_names_an_unknown_field_and_writes_nothing(tmp_path: Path) -> None:
    done = render_file(tmp_path, [{"names": ["nan"], "api_key": "secret"}])
    assert (done.returncode, (tmp_path / "config.json").exists()) == (1, False)
    assert "no field api_key" in done.stderr
