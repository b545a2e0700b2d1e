"""A vLLM that needs no GPU and no model: same flags, routes, streams, metrics and signals.

For the local stack and the tests. It answers from a script (`script.py`), counts tokens with a
rule (`tokens.py`), misbehaves on demand (`faults.py`), and never logs a prompt or an answer.
Behaviour follows vLLM 0.32.0. Run it with `python -m inference.simulator MODEL [vllm flags]`.
"""
