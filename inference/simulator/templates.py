"""Chat templates: where they come from, and whether Jinja could read them at all."""

from pathlib import Path

from inference.simulator.faults import ProcessFault
from inference.simulator.flags import Options
from inference.simulator.model import Model
from inference.simulator.settings import Settings

_PAIRS = (("{{", "}}"), ("{%", "%}"), ("{#", "#}"))


def missing_file(options: Options) -> str | None:
    given = options.chat_template
    if not given or not _is_path(given) or Path(given).is_file():
        return None
    return (
        f"vllm.exceptions.VLLMValidationError: The supplied chat template string ({given}) "
        f"appears path-like, but doesn't exist! Tried: {given}"
    )


def broken(options: Options, settings: Settings, model: Model) -> str | None:
    """What is wrong with it; vLLM finds out when the model is loaded.

    There is no Jinja here: only tags that are never closed are found.
    """
    if ProcessFault.BAD_TEMPLATE in settings.faults:
        return "jinja2.exceptions.TemplateSyntaxError: Encountered unknown tag 'simulated'."
    template = _text(options) or model.chat_template() or ""
    for opens, closes in _PAIRS:
        if template.count(opens) > template.count(closes):
            return f"jinja2.exceptions.TemplateSyntaxError: unexpected end, {opens!r} is open."
    return None


def _text(options: Options) -> str | None:
    given = options.chat_template
    if given and _is_path(given) and Path(given).is_file():
        return Path(given).read_text()
    return given


def _is_path(given: str) -> bool:
    """vLLM takes a word without braces or line breaks for one."""
    return not any(sign in given for sign in "{}\n")
