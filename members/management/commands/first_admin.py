"""manage.py first_admin [--email EMAIL] [--json]: the first admin of a new installation."""

import json
import secrets
from argparse import ArgumentParser
from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connection, transaction

from members.models import User

LOCK = 20_241_102


class Command(BaseCommand):
    help = (
        "Creates the first admin with a random password, and prints both once. "
        "Where there is staff already, it does nothing and says nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--email", default=default_email())
        parser.add_argument("--json", action="store_true", help="machine-readable")

    def handle(self, *args: Any, **options: Any) -> None:
        password = create(email=options["email"])
        if password is None:
            return
        if options["json"]:
            found = {"email": options["email"], "password": password}
            self.stdout.write(json.dumps(found))
        else:
            self.stdout.write(f"First admin: {options['email']}\nPassword:    {password}")


def default_email() -> str:
    contact = settings.CONTACT_EMAIL
    return "admin@example.org" if contact.endswith("@localhost") else contact


@transaction.atomic
def create(*, email: str) -> str | None:
    """Returns the password, or None if there is an admin already; two at once make one admin."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
    if User.objects.filter(is_staff=True).exists():
        return None
    password = secrets.token_urlsafe(15)
    admin = User.objects.create_superuser(email, password)
    EmailAddress.objects.create(user=admin, email=admin.email, verified=True, primary=True)
    return password
