"""A machine without a browser is told what to do."""

import pytest

from tests.browser.chromium import chromium


def test_missing_chromium_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CHROMIUM", raising=False)
    with pytest.raises(FileNotFoundError, match="apt-get install chromium"), chromium():
        pass
