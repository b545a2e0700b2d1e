"""A new DJANGO_SECRET_KEY signs nobody out while the old one is listed as a fallback."""

import os
import secrets
import subprocess
import sys

import pytest

SIGN = "from django.core import signing; print(signing.dumps('her'))"
READ = "import sys; from django.core import signing; print(signing.loads(sys.argv[1]))"


def django(code: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "nan.settings"} | environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("fallbacks", "accepted"), [("{old}", True), ("x {old}", True), ("", False)]
)
def test_what_the_old_key_signed(fallbacks: str, accepted: bool) -> None:
    old, new = secrets.token_urlsafe(50), secrets.token_urlsafe(50)
    signed = django(SIGN, DJANGO_SECRET_KEY=old).stdout.strip()
    retired = fallbacks.format(old=old)
    read = django(READ, signed, DJANGO_SECRET_KEY=new, DJANGO_SECRET_KEY_FALLBACKS=retired)
    assert (read.returncode == 0, read.stdout.strip() == "her") == (accepted, accepted)
