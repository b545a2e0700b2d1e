"""The counters of speculative decoding, from vLLM's own class for them.

Only with CONTRACT_ENGINE=vllm: the class is written to, so that names, labels and every value can
be compared. Rules, dashboards and the smoke test read them; the engines that count are in
`test_drafts.py`.
"""

import subprocess
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.contract.contenders import ROOT, VLLM_HOME

RECORDED = ROOT / "tests" / "monitoring" / "vllm-speculation.prom"
WRITTEN = """
from types import SimpleNamespace
from prometheus_client import generate_latest
from vllm.v1.spec_decode.metrics import SpecDecodingProm, SpecDecodingStats

labels, values = ["model_name", "engine"], {0: ["tiny", "0"]}
told = SpecDecodingProm(SimpleNamespace(num_speculative_tokens=2), labels, values)
told.observe(SpecDecodingStats(num_spec_tokens=2, num_drafts=10, num_draft_tokens=20,
             num_accepted_tokens=13, num_accepted_tokens_per_pos=[9, 4]))
print(generate_latest().decode())
"""


def test_counters_of_drafts_are_those_of_vllm() -> None:
    """Names, types, labels and values."""
    python = str(VLLM_HOME / "bin" / "python")
    said = subprocess.run([python, "-c", WRITTEN], check=True, capture_output=True, text=True)
    told = said.stdout[said.stdout.index("# HELP") :]
    assert samples(told) == samples(RECORDED.read_text())


def samples(text: str) -> dict[str, Any]:
    return {
        family.name: (family.type, [(s.name, s.labels, s.value) for s in family.samples])
        for family in text_string_to_metric_families(text)
        if family.name.startswith("vllm:") and not family.name.endswith("_created")
    }
