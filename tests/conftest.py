"""Fixtures for every test."""

import pytest
from pytest_django import Settings

pytest_plugins = ["tests.people"]


@pytest.fixture(autouse=True)
def _plain_static_files(settings: Settings) -> None:
    """Tests run without `collectstatic`: names are not hashed."""
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}


@pytest.fixture(autouse=True)
def _quick_passwords(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
