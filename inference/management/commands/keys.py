"""`manage.py keys list|rotate|revoke|reconcile`: what the pages do, for scripts and bad days."""

import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils import translation

from inference import keys, reveal
from inference.errors import words
from inference.management import operating
from inference.models import Key, KeyState
from inference.reconcile import reconcile

WAIT_SECONDS = 90


class Command(BaseCommand):
    help = (
        "Members' keys. `reconcile` needs LITELLM_MASTER_KEY: run it where the gateway worker is."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listed = verbs.add_parser("list", help="keys that are not deleted")
        rotate = verbs.add_parser("rotate", help="replaces a member's key and prints the new one")
        revoke = verbs.add_parser("revoke", help="stops and deletes all keys of a member")
        compare = verbs.add_parser("reconcile", help="compares our rows with the gateway now")
        listed.add_argument("email", nargs="?")
        for verb in (rotate, revoke):
            verb.add_argument("email")
            verb.add_argument("--reason", default="", help="kept in the audit trail")
        rotate.add_argument("--at-once", action="store_true", help="the old key stops first")
        compare.add_argument(
            "--force", action="store_true", help="remove unknown keys even if there are many"
        )
        operating.can_print_json(listed, rotate, revoke, compare)

    def handle(self, *args: Any, **options: Any) -> None:
        run = getattr(self, f"_{options['verb']}")
        try:
            result = run(options)
        except keys.KeyRefused as error:
            raise CommandError(_operators_words(error.code)) from None
        operating.show(self, result, as_json=bool(options.get("json")), nothing="No keys.")

    def _list(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        rows = Key.objects.live().select_related("holder__member")
        if options["email"]:
            rows = rows.of(_person(options["email"]))
        return [_row(key) for key in rows]

    def _revoke(self, options: dict[str, Any]) -> dict[str, Any]:
        user = _person(options["email"])
        keys.revoke(user=user, actor=None, reason=options["reason"])
        return {"member": user.email, "pending_at_gateway": keys.pending_at_gateway(user)}

    def _rotate(self, options: dict[str, Any]) -> dict[str, Any]:
        """The pair that opens the new key lives in this process only."""
        user, pair = _person(options["email"]), reveal.new_private_key()
        key = keys.rotate(
            user=user,
            public_key=bytes(pair.public_key),
            actor=None,
            at_once=options["at_once"],
            reason=options["reason"],
        )
        if bytes(key.public_key) != bytes(pair.public_key):
            raise CommandError("A new key was being made already; its member can open it.")
        _wait_for(key)
        value = reveal.take(key.id, key.token, pair)
        return _row(key) | {"key": value, "note": "shown once; hand it over in private"}

    def _reconcile(self, options: dict[str, Any]) -> dict[str, Any]:
        if not settings.LITELLM_MASTER_KEY:
            raise CommandError(
                "LITELLM_MASTER_KEY is not set here. Run this where the gateway worker runs; in "
                'the local stack after eval "$(python -m nan.local env --gateway)".'
            )
        result = reconcile(force=options["force"])
        if result is None:
            raise CommandError(
                "The gateway can't be read now. Is it running, and is the key right?"
            )
        names = ("ours", "theirs", "orphans", "spared", "missing", "differing", "drift")
        return {name: getattr(result, name) for name in names}


def _operators_words(code: str) -> str:
    """In English, as everything that commands print."""
    with translation.override("en"):
        return str(words(code).operator)


def _person(email: str) -> Any:
    user = get_user_model().objects.filter(email__iexact=email).first()
    if user is None:
        raise CommandError(f"Nobody here has the address {email}.")
    return user


def _row(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "member": getattr(key.holder.member, "email", None) or key.holder_id,
        "hint": key.hint,
        "state": key.state,
        "rpm": key.rpm,
        "parallel": key.parallel,
        "remove_at": key.remove_at,
        "error": key.error_code,
    }


def _wait_for(key: Key) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        key.refresh_from_db()
        if key.state == KeyState.ACTIVE:
            return
        if key.state != KeyState.REQUESTED:
            raise CommandError(_operators_words(key.error_code))
        time.sleep(0.3)
    raise CommandError("The gateway worker has not made the key yet; it goes on trying.")
