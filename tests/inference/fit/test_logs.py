"""The estimate against what engines said at their start, in public reports (logs.json).

The bound of each is the error that it has, rounded up to the next tenth of a percent; a wider one
would hide a mistake.
"""

from typing import Any

import pytest

from tests.inference.fit.accuracy import LOGS, compared, table, written

BOUNDS = {
    ("Qwen3-14B, GQA", "tokens"): 0.0,
    ("Qwen3-14B, GQA", "requests"): 0.2,
    ("Qwen3.6-35B-A3B nvfp4, fp8 KV, RTX 5090", "tokens"): 0.0,
    ("Qwen3.6-35B-A3B nvfp4, fp8 KV, RTX 5090", "requests"): 0.1,
    ("Qwen3.6-35B-A3B nvfp4, fp8 KV, RTX 5090 (2)", "tokens"): 0.0,
    ("Qwen3.6-35B-A3B nvfp4, fp8 KV, RTX 5090 (2)", "requests"): 0.1,
    ("Qwen3-235B-A22B-FP8, 4 x H100", "tokens"): 1.2,
    ("Qwen3.8-27B-FP8, fp8 KV, 2 x RTX 3090", "tokens"): 0.0,
    ("Qwen3.8-27B-FP8, fp8 KV, 2 x RTX 3090", "requests"): 0.1,
    ("Llama-3.1-8B, RTX 3090", "tokens"): 0.2,
    ("Llama-3.1-8B, RTX 3090", "requests"): 0.0,
    ("Llama-3.1-8B, RTX 3090", "available"): 1.7,
    ("gpt-oss-120b, sliding windows", "tokens"): 0.1,
    ("Gemma-3-4b, sliding windows, A100", "requests"): 0.1,
    ("Qwen3.5-27B, H20", "requests"): 0.2,
    ("DeepSeek-V2-Lite, MLA", "needed"): 0.1,
    ("gpt-oss-20b, A100 80 GB", "available"): 1.6,
    ("SmolLM2-135M, on a CPU", "tokens"): 0.0,
    ("SmolLM2-135M, on a CPU", "requests"): 0.1,
    ("tiny random Qwen3, on a CPU", "tokens"): 0.0,
    ("tiny random Qwen3, on a CPU", "requests"): 0.0,
}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log["name"])
def test_error_against_a_published_log(log: dict[str, Any]) -> None:
    found = compared(log)
    assert found, "a log that nothing is compared with"
    for row in found:
        assert abs(row.error) <= BOUNDS[log["name"], row.what], row


def test_the_document_has_the_same_figures() -> None:
    """If not: python -m tests.inference.fit.accuracy"""
    assert written() == table()
