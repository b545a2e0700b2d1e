"""What an operator can leave unsafe or unset, each with an id and the remedy."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register


@register(Tags.security, deploy=True)
def site_address(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.SITE_URL.startswith("https://") and settings.API_URL.startswith("https://"):
        return []
    return [
        Error(
            "SITE_URL and API_URL must begin with https:// in production.",
            hint="Set both to the public addresses that the edge serves with TLS.",
            id="nan.E001",
        )
    ]


@register(Tags.security, deploy=True)
def local_stack(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if not settings.LOCAL_STACK:
        return []
    return [
        Error(
            "NAN_LOCAL is set: /dev/mail/ shows everyone's mail.",
            hint="Unset NAN_LOCAL on every host that others can reach.",
            id="nan.E002",
        )
    ]


@register(Tags.security, deploy=True)
def contact(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if settings.CONTACT_EMAIL.endswith("@localhost"):
        found.append(
            Warning(
                "CONTACT_EMAIL is not set: people are told to write to an address that is not one.",
                hint="Set CONTACT_EMAIL to an address that your admins read.",
                id="nan.W001",
            )
        )
    if "@localhost" in settings.DEFAULT_FROM_EMAIL:
        found.append(
            Warning(
                "MAIL_FROM is not set: mail from localhost is refused by most servers.",
                hint='Set MAIL_FROM, for example "NaN <hello@your.domain>".',
                id="nan.W002",
            )
        )
    return found
