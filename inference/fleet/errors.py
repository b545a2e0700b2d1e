"""Refusals of what a person asked for; `inference.fleet.words` has the sentences."""


class FleetRefused(Exception):
    """Not done, nothing changed. Carries a code, and what its sentence names."""

    def __init__(self, code: str, **named: object) -> None:
        super().__init__(code)
        self.code = code
        self.named = named
