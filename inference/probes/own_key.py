"""The key of a run: made by the gateway worker as any member's, gone when the run ends.

It is stored nowhere. The gateway worker seals it as it does for a browser; the half that opens it
is not kept either, but computed from SECRET_KEY and the run's number, so that whichever worker
goes on with the run can open it. Redis alone, or the database alone, gives nothing away.
"""

import hashlib
from typing import Final
from uuid import UUID

from django.conf import settings
from nacl.public import PrivateKey

from inference import keys, reveal
from inference.limits import Limits
from inference.models import Key, KeyState, ProbeRun

OWNER: Final = UUID("00000000-0000-4000-8000-70726f626573")
"""Its holder, whom the gateway knows by this as it knows members by theirs. Left out of usage."""
LIMITS: Final = Limits(60, 2)


class NoKey(Exception):
    """The run can't have a key; the code says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def ask(run: ProbeRun) -> Key:
    public_key = bytes(_private_key(run).public_key)
    try:
        return keys.replace_own(
            owner_ref=OWNER, limits=LIMITS, public_key=public_key, reason=f"probes {run.pk}"
        )
    except keys.KeyRefused:
        raise NoKey("probe_too_many_keys") from None


def value(run: ProbeRun) -> str | None:
    """None while it is being made."""
    key = _key(run)
    if key is None or key.state in (KeyState.FAILED, KeyState.BLOCKED, KeyState.DELETED):
        raise NoKey("probe_no_key")
    if key.state != KeyState.ACTIVE:
        return None
    try:
        found = reveal.look(key.id, key.token, _private_key(run))
    except (reveal.RevealUnavailable, reveal.WrongBrowser):
        raise NoKey("probe_key_unreadable") from None
    if found is None:
        raise NoKey("probe_key_unreadable")
    return found


def give_back(run: ProbeRun) -> None:
    key = _key(run)
    if key:
        reveal.drop(key.id, key.token)
    keys.remove_own(owner_ref=OWNER, reason=f"probes {run.pk}")


def _key(run: ProbeRun) -> Key | None:
    return Key.objects.filter(pk=run.key_id).first() if run.key_id else None


def _private_key(run: ProbeRun) -> PrivateKey:
    made = hashlib.blake2b(
        str(run.pk).encode(),
        key=hashlib.sha512(settings.SECRET_KEY.encode()).digest(),
        digest_size=32,
        person=b"key of probes",
    )
    return PrivateKey(made.digest())
