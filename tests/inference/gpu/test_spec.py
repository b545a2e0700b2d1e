"""The allow-lists: what no host runs, whoever asks."""

import json
from typing import Any

import pytest

from inference.gpu.spec import EngineSpec, SpecError
from tests.inference.gpu.rig import spec


def of(name: str, *values: Any) -> list[tuple[str, Any]]:
    return [(name, value) for value in values]


HOSTILE: list[tuple[str, Any]] = [
    *of("instance", "", "../x", "r1/g1", "r1 g1", "R1", "r1\n", "-r1", "a" * 61),
    *of("model", "small", "/etc/passwd", "a/../b", "a/b/c", "--x/y", "a/b\n", 7),
    *of("revision", "main", "0" * 39, "G" * 40, "0" * 40 + "\n"),
    *of("names", [], ["--host"], ["a b"], ["a", "a"], "nan", ["a\nb"], ["../a"]),
    *of("host", "0.0.0.0", "::", "8.8.8.8", "localhost", "127.0.0.1\n", "", 1),
    *of("port", 0, 80, 65_536, "8000", True, 10**30, -1, 8000.0),
    *of("gpus", [64], [-1], [0, 0], ["0"], [True], 0, list(range(17))),
    *of("shutdown_timeout", 0, -1, 3601, "30", True),
    *of("memory_mib", -1, 10**12, None, 1.5),
    *of("disk_mib", -1, 10**12),
    *of("flags", []),
    *of("environment", "A=B"),
]
FLAGS: list[tuple[str, Any]] = [
    ("enable-log-requests", True), ("enable-log-outputs", True), ("host", "0.0.0.0"),
    ("port", 1), ("uds", "/tmp/x"), ("api-key", "x"), ("config", "/etc/x.yaml"),
    ("trust-remote-code", True), ("tool-parser-plugin", "/tmp/x.py"), ("middleware", ["x"]),
    ("served-model-name", ["x"]), ("allowed-local-media-path", "/"), ("download-dir", "/tmp"),
    ("Max-Model-Len", 1), ("max_model_len", 1), ("max-model-len --host", 1), ("", 1),
    ("max-model-len", 0), ("max-model-len", 10**9), ("max-model-len", "32k\n"),
    ("max-model-len", True), ("max-model-len", None),
    ("gpu-memory-utilization", 1.5), ("gpu-memory-utilization", float("nan")),
    ("tool-call-parser", "--host"), ("tool-call-parser", "a b"), ("tool-call-parser", "x\ny"),
    ("tool-call-parser", "/tmp/plugin.py"), ("enable-auto-tool-choice", "yes"),
    ("chat-template", "/etc/passwd"), ("chat-template", "../x.jinja"), ("chat-template", "x.py"),
    ("chat-template", "{{ '' }}.jinja"), ("kv-cache-memory-bytes", "64M; rm"),
    ("hf-overrides", {"auto_map": {"AutoModel": "evil.Model"}}),
    ("hf-overrides", {"architectures": ["X"]}), ("hf-overrides", "{}"),
    ("speculative-config", {"method": "ngram", "model": "/tmp/x"}),
    ("speculative-config", {"method": "eagle3", "model": "owner/draft"}),
    ("speculative-config", {"method": "custom_class", "worker_cls": "evil"}),
    ("speculative-config", {"num_speculative_tokens": 10**6}),
    ("default-chat-template-kwargs", {"x": "../../y"}), ("default-chat-template-kwargs", {"a": {}}),
    ("compilation-config", {"backend": "evil.module"}),
    ("limit-mm-per-prompt", {"image": -1}), ("limit-mm-per-prompt", {"shell": 1}),
    ("override-generation-config", {f"k{n}": "x" * 60 for n in range(100)}),
]  # fmt: skip
VARIABLES: list[tuple[str, Any]] = [
    ("LD_PRELOAD", "x"), ("PATH", "x"), ("PYTHONPATH", "x"), ("VLLM_LOGGING_LEVEL", "DEBUG"),
    ("VLLM_PLUGINS", "x"), ("VLLM_API_KEY", "x"), ("HF_HUB_OFFLINE", "0"),
    ("CUDA_VISIBLE_DEVICES", "1"), ("VLLM_USE_DEEP_GEMM", "1\nLD_PRELOAD=x"),
    ("VLLM_USE_DEEP_GEMM", "/etc/x"), ("VLLM_USE_DEEP_GEMM", 1), ("SIM_GPU_DIR", "x"),
    ("VLLM_CPU_KVCACHE_SPACE", ""), ("SIM_FAULTS_FILE", "x"), ("SIM_LOAD_SECONDS", "a b"),
    ("sim_x", "1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), HOSTILE)
def test_a_hostile_value_is_refused(name: str, value: Any) -> None:
    with pytest.raises(SpecError) as refused:
        EngineSpec.from_json({**spec().to_json(), name: value})
    assert refused.value.code == f"{name}_refused"
    assert "\n" not in refused.value.text


@pytest.mark.parametrize(("flag", "value"), FLAGS)
def test_a_flag_or_value_off_the_list_is_refused(flag: str, value: Any) -> None:
    with pytest.raises(SpecError) as refused:
        EngineSpec.from_json({**spec().to_json(), "flags": {flag: value}})
    assert refused.value.code == "flag_refused"


@pytest.mark.parametrize(("name", "value"), VARIABLES)
def test_a_variable_off_the_list_is_refused(name: str, value: Any) -> None:
    with pytest.raises(SpecError) as refused:
        EngineSpec.from_json({**spec().to_json(), "environment": {name: value}})
    assert refused.value.code == "environment_refused"


@pytest.mark.parametrize("found", [None, [], "x", {}, {"instance": "r1"}, {1: 2}])
def test_what_is_no_specification_is_refused(found: Any) -> None:
    with pytest.raises(SpecError) as refused:
        EngineSpec.from_json(found)
    assert refused.value.code == "spec_unreadable"


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(SpecError) as refused:
        EngineSpec.from_json({**spec().to_json(), "command": "sh"})
    assert refused.value.code == "spec_unreadable"


def test_it_survives_the_queue() -> None:
    full = spec(
        flags={
            "max-model-len": 131_072,
            "tool-call-parser": "qwen3_coder",
            "enable-auto-tool-choice": True,
            "speculative-config": {"method": "qwen3_next_mtp", "num_speculative_tokens": 2},
            "hf-overrides": {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}},
        },
        environment={"VLLM_USE_DEEP_GEMM": "1", "SIM_FAULTS": "example/Small-1B:hang"},
    )
    assert EngineSpec.from_json(json.loads(json.dumps(full.to_json()))) == full


def test_argv_is_one_word_for_each_flag() -> None:
    found = spec(
        port=8101,
        flags={
            "speculative-config": {"method": "ngram", "num_speculative_tokens": 3},
            "enable-prefix-caching": False,
            "enable-auto-tool-choice": True,
            "max-model-len": 8192,
            "chat-template": "chat_template.jinja",
        },
    ).argv("/hf/snapshot")
    assert found == [
        "/hf/snapshot", "--served-model-name", "small", "nan", "--host=127.0.0.1", "--port=8101",
        "--shutdown-timeout=5", "--disable-uvicorn-access-log",
        "--allowed-media-domains=none.invalid",
        "--chat-template=/hf/snapshot/chat_template.jinja", "--enable-auto-tool-choice",
        "--no-enable-prefix-caching", "--max-model-len=8192",
        '--speculative-config={"method":"ngram","num_speculative_tokens":3}',
    ]  # fmt: skip
