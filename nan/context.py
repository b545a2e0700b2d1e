"""What every page may show of the site itself."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from nan.anonymous import knows_nobody


def site(request: HttpRequest) -> dict[str, Any]:
    return {
        "SITE_URL": settings.SITE_URL,
        "API_URL": settings.API_URL,
        "PUBLIC_MODEL": settings.PUBLIC_MODEL,
        "MEMBER_RPM": settings.MEMBER_RPM,
        "MEMBER_PARALLEL": settings.MEMBER_PARALLEL,
        "CONTACT_EMAIL": settings.CONTACT_EMAIL,
        "LOCAL_STACK": settings.LOCAL_STACK,
        "KNOWS_NOBODY": knows_nobody(request),
        "GITHUB_ENABLED": bool(settings.GITHUB_CLIENT_ID),
    }
