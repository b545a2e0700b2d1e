"""Which fields of a request are for the model. Everything else steers LiteLLM, or is dropped.

An allow-list, because LiteLLM reads some two hundred names from a body (retries, providers,
fallbacks, caches, tags, addresses, credentials) and gets more with each release. Sources: the
references of OpenAI and Anthropic, and vLLM's protocol classes with its extras.

Left out on purpose, though an API or vLLM knows them: names of people and things, which LiteLLM
stores (`user`, `metadata`, `safety_identifier`, `client_metadata`); what lets one request overtake
or outgrow others (`priority`, `use_beam_search`, `background`); what names other places or runs
templates (`mcp_servers`, `prompt` of Responses, `chat_template`, `logits_processors`).
"""

from __future__ import annotations

from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SAMPLING: Final = _names("""
    model stream stream_options temperature top_p top_k min_p seed stop frequency_penalty
    presence_penalty repetition_penalty length_penalty logit_bias logprobs max_tokens min_tokens
    n best_of ignore_eos stop_token_ids include_stop_str_in_output skip_special_tokens
    spaces_between_special_tokens bad_words allowed_token_ids truncate_prompt_tokens
    prompt_logprobs echo add_special_tokens return_token_ids return_tokens_as_token_ids
    response_format structured_outputs guided_json guided_regex guided_choice guided_grammar
    guided_whitespace_pattern cache_salt prompt_cache_key prompt_cache_retention service_tier store
""")
TEMPLATE: Final = _names("""
    chat_template_kwargs add_generation_prompt continue_final_message documents include_reasoning
    thinking_token_budget
""")
TOOLS: Final = _names("tools tool_choice parallel_tool_calls")

CHAT: Final = (
    SAMPLING
    | TEMPLATE
    | TOOLS
    | _names("""
    messages max_completion_tokens top_logprobs reasoning_effort reasoning thinking verbosity
    functions function_call modalities audio prediction web_search_options enable_thinking
""")
)
COMPLETIONS: Final = SAMPLING | _names("prompt suffix")
RESPONSES: Final = (
    SAMPLING
    | TEMPLATE
    | TOOLS
    | _names("""
    input instructions max_output_tokens max_tool_calls previous_response_id reasoning text
    top_logprobs truncation include context_management
""")
) - _names("n best_of")
MESSAGES: Final = (
    TEMPLATE
    | TOOLS
    | _names("""
    model messages system max_tokens stop_sequences stream temperature top_p top_k thinking
    context_management output_config output_format cache_control service_tier min_p
    repetition_penalty
""")
)
EMBEDDINGS: Final = _names("""
    model input encoding_format dimensions truncate_prompt_tokens add_special_tokens
""")
SPEECH: Final = _names("model input voice instructions response_format speed stream_format")
TRANSCRIPTIONS: Final = _names("""
    model file language prompt response_format temperature stream include
    timestamp_granularities timestamp_granularities[] include[] chunking_strategy
""")

# Whoever reads the rest of what a client sends, these headers are all of it.
HEADERS: Final = frozenset(
    name.encode()
    for name in _names("""
    host authorization x-api-key api-key accept accept-encoding connection content-type
    content-length expect anthropic-version anthropic-beta x-forwarded-for x-forwarded-proto
""")
)
