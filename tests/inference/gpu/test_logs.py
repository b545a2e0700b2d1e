"""What is read out of an engine's logs, and what may leave the host."""
# ruff: noqa: E501  # log lines are as long as they are

from pathlib import Path

import pytest

from inference.gpu import causes, logtail

# From real starts: lines of vLLM 0.32 and 0.33, shortened in the middle of long ones.
START = [
    ("(APIServer pid=7) INFO 11-29 12:00:01 [api_server.py:1] vLLM API server version 0.33.0", 0),
    ("(EngineCore pid=9) INFO 11-29 12:00:05 [gpu_model_runner.py:1] Starting to load model x", 5),
    ("Loading safetensors checkpoint shards:   0% Completed | 0/5 [00:00<?, ?it/s]", 5),
    ("Loading safetensors checkpoint shards:  40% Completed | 2/5 [00:02<00:03,  1.2s/it]", 27),
    ("Loading safetensors checkpoint shards: 100% Completed | 5/5 [00:05<00:00,  1.1s/it]", 60),
    ("(EngineCore pid=9) INFO 11-29 12:00:20 [default_loader.py:1] Loading weights took 5.1 s", 60),
    ("(EngineCore pid=9) INFO 11-29 12:00:21 [backends.py:1] Dynamo bytecode transform time: 4", 62),
    ("(EngineCore pid=9) INFO 11-29 12:00:31 [gpu_worker.py:1] Available KV cache memory: 3 GiB", 75),
    ("(EngineCore pid=9) INFO 11-29 12:00:31 [kv_cache_utils.py:1] GPU KV cache size: 41,376 tokens", 75),
    ("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  43%|####3     | 29/67", 87),
    ("Capturing CUDA graphs (decode, FULL): 100%|##########| 35/35", 97),
    ("(EngineCore pid=9) INFO 11-29 12:00:41 [core.py:1] init engine (profile) took 21 seconds", 97),
    ("(APIServer pid=7) INFO:     Application startup complete.", 100),
]  # fmt: skip


def test_a_start_is_followed_to_its_end() -> None:
    lines: list[str] = []
    percents = []
    for line, _ in START:
        lines.append(line)
        percents.append(logtail.progress(lines).percent or 0)
    assert percents == [percent for _, percent in START]
    assert logtail.progress(lines) == logtail.Start(
        percent=100, phase="serving", serving=True, kv_tokens=41_376
    )


def test_phases_have_names() -> None:
    found = [logtail.progress([line for line, _ in START[:count]]).phase for count in (1, 4, 8, 10)]
    assert found == ["starting", "loading weights", "sizing the KV cache", "capturing graphs"]


def test_a_progress_bar_is_one_line(tmp_path: Path) -> None:
    bar = "".join(f"\rLoading safetensors checkpoint shards: {n}% Completed" for n in range(100))
    (tmp_path / "stderr.log").write_bytes(bar.encode() + b"\n\x1b[31mdone\x1b[0m\n")
    found = logtail.shown(logtail.read(tmp_path), serving=False)
    assert found == ["Loading safetensors checkpoint shards: 99% Completed", "done"]


def test_a_line_that_was_cut_is_left_out_whatever_letters_follow(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("the-host-key\n" + "█" * 10 + "\nlast\n")
    assert logtail.tail(tmp_path / "log", size=10 * 3 + 6 + 4) == ["█" * 10, "last"]


def test_lines_are_few_short_and_without_secrets() -> None:
    lines = [f"line {number} {'x' * 500}" for number in range(30)]
    lines += ["api_key sk-abcdefghijkl, Bearer abc.def and the-host-key"]
    found = logtail.shown(lines, serving=False, secrets=("the-host-key",))
    assert len(found) == 20
    assert {len(line) for line in found[:-1]} == {500}
    assert found[-1] == "api_key …, Bearer … and …"


def test_what_a_serving_engine_says_about_requests_stays_on_the_host() -> None:
    known = (
        "(APIServer pid=7) INFO 11-29 12:00:01 [loggers.py:1] Engine 000: Avg prompt throughput: 1"
    )
    lines = [
        known,
        "ValueError: the prompt 'my secret diary' is too long",
        "Shutting down is what I dream of, said the prompt's second line",
        "(APIServer pid=7) ERROR 11-29 12:00:01 [serving.py:1] Error with my secret diary",
        "my secret diary",
    ]
    assert logtail.shown(lines, serving=True) == [known]


def test_a_long_log_is_cut_under_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logtail, "LARGEST", 1000)
    monkeypatch.setattr(logtail, "KEPT", 10)
    with (tmp_path / "stdout.log").open("a") as log:
        log.write("x" * 995 + "0123456789")
        log.flush()
        logtail.trim(tmp_path)
        log.write("next")
    assert (tmp_path / "stdout.log").read_text() == "next"
    assert (tmp_path / "stdout.log.1").read_text() == "0123456789"


E = "(APIServer pid=7) ERROR "
RECOGNISED = [
    ("flag_refused", 2, "vllm serve: error: unrecognized arguments: --x", "unrecognized arguments: --x"),
    ("flag_value", 2, "vllm: error: argument --speculative-config/-sc: Value {x cannot be converted to <f>.",
     "argument --speculative-config/-sc: Value {x cannot be converted to <f>."),
    ("speculative_bad", 1, "pydantic: 1 validation error for SpeculativeConfig",
     "validation error for SpeculativeConfig"),
    ("weights_missing", 1, "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'a'",
     "HFValidationError: Repo id must be in the form 'a'"),
    ("weights_missing", 1, "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find",
     "LocalEntryNotFoundError: Cannot find"),
    ("context_too_long", 1, "ValueError: User-specified max_model_len (9) is greater than the derived max",
     "User-specified max_model_len (9) is greater than the derived max"),
    ("kv_cache_too_small", 1, E + "ValueError: To serve at least one request with the model's max seq len (8192), …",
     "To serve at least one request with the model's max seq len (8192), …"),
    ("gpu_memory", 1, "ValueError: Available memory 1 GiB is less than requested 2",
     "Available memory 1 GiB is less than requested 2"),
    ("gpu_memory", 1, "ValueError: Free memory on device cuda:0 (1/2 GiB) on startup is less than desired",
     "Free memory on device cuda:0 (1/2 GiB) on startup is less than desired"),
    ("gpu_memory", 1, "torch.OutOfMemoryError: CUDA out of memory. Tried", "torch.OutOfMemoryError: CUDA out of memory. Tried"),
    ("port_taken", 1, "OSError: [Errno 98] Address already in use", "OSError: [Errno 98] Address already in use"),
    ("parser_unknown", 1, "KeyError: invalid tool call parser: x (chose from { a })",
     "invalid tool call parser: x (chose from { a })"),
    ("parser_unknown", 1, "KeyError: Reasoning parser 'x' not found.", "Reasoning parser 'x' not found."),
    ("engine_missing", 127, "Cannot start /x/vllm: No such file or directory",
     "Cannot start /x/vllm: No such file or directory"),
    ("died", 1, "RuntimeError: something new", "RuntimeError: something new"),
    ("died", 0, "", ""),
    ("killed", -9, "", "Ended by signal 9."),
]  # fmt: skip


@pytest.mark.parametrize(("code", "exit_code", "line", "text"), RECOGNISED)
def test_a_cause_is_recognised(code: str, exit_code: int, line: str, text: str) -> None:
    after = ["RuntimeError: Engine core initialization failed. See root cause above."]
    lines = ["INFO first", line, *(after if code not in ("died", "killed") else [])]
    found = causes.recognise(lines, exit_code=exit_code, signalled=False, serving=False)
    assert found == {"code": code, "text": text}


def test_an_end_that_was_asked_for_has_no_cause() -> None:
    lines = ["KeyboardInterrupt: terminated"]
    assert causes.recognise(lines, exit_code=-15, signalled=True, serving=True) is None


def test_after_it_has_served_only_the_errors_name_is_told() -> None:
    lines = ["ValueError: max_model_len and my secret diary, To serve at least one request"]
    found = causes.recognise(lines, exit_code=1, signalled=False, serving=True)
    assert found == {"code": "died", "text": "ValueError"}


KV_SHORT = (
    "To serve at least one request with the model's max seq len (262144), (24.00 GiB KV"
    " cache is needed, which is larger than the available KV cache memory (19.27 GiB). Based on the"
    " available memory, the estimated maximum model length is 210432. Try increasing"
    " `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
)


def test_a_reason_is_told_whole_or_up_to_a_word() -> None:
    def told(error: str) -> str:
        line = f"(EngineCore pid=9) ERROR 11-29 12:00:31 [core.py:1136] ValueError: {error}"
        lines = logtail.shown([line], serving=False)
        found = causes.recognise(lines, exit_code=1, signalled=False, serving=False)
        return found["text"] if found else ""

    assert told(KV_SHORT) == KV_SHORT
    assert told("decreasing " * 60) == "ValueError: " + ("decreasing " * 35).rstrip() + "…"
    assert told("x" * 900) == "ValueError: " + "x" * 387 + "…"
