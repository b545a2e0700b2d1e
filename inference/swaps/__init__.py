"""A slot moves from one model to another: `plan.py` is what people decide, `run.py` what follows,
`outlook.py` what can be said before."""
