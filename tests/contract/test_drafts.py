"""Speculative decoding, started by its flag: what the smoke test asks for is there on both."""

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from inference import smoke
from inference.engine import Engine
from tests.contract.contenders import KEY, SPEAKING, Contender

DRAFTS = '--speculative-config={"method":"ngram","num_speculative_tokens":2}'
PATIENT = smoke.Limits(first=60, whole=120)
COUNTERS = {
    f"vllm:spec_decode_num_{what}" for what in ("drafts", "draft_tokens", "accepted_tokens")
}


def test_drafts_are_made_accepted_and_counted(contender: Contender, folder: Path) -> None:
    """With a model that can repeat a line: where nothing occurs twice, n-grams have no guess."""
    words = ("--served-model-name", "nan", "--max-model-len", "1024", DRAFTS)
    target = smoke.Target(name="nan", capabilities=frozenset({"chat", "speculative"}))
    with contender.start(*words, model=SPEAKING, folder=folder) as engine:
        engine.wait_healthy()
        with Engine(str(engine.http.base_url), KEY) as client:
            assert smoke.run("speculative", client, target, limits=PATIENT).code == ""
        told = text_string_to_metric_families(engine.http.get("/metrics").text)
        assert {family.name for family in told if family.type == "counter"} >= COUNTERS
