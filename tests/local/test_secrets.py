import json
import stat
from pathlib import Path

import pytest

from nan.local import secrets


def test_made_once_and_kept_to_oneself(tmp_path: Path) -> None:
    file = tmp_path / "secrets.json"
    first = secrets.load_or_make(file)
    assert set(first) == set(secrets.MAKERS)
    assert len(set(first.values())) == len(secrets.MAKERS)
    assert min(len(value) for value in first.values()) >= 43  # 256 bits
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secrets.load_or_make(file) == first


def test_a_new_secret_is_added_and_the_old_ones_stay(tmp_path: Path) -> None:
    file = tmp_path / "secrets.json"
    file.write_text(json.dumps({"valkey": "old"}))
    file.chmod(0o644)
    found = secrets.load_or_make(file)
    assert found["valkey"] == "old"
    assert set(found) == set(secrets.MAKERS)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["{", "[]", '{"valkey": 1}'])
def test_a_broken_file_is_kept_and_the_remedy_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "secrets.json"
    file.write_text(text)
    with pytest.raises(secrets.SecretsError, match=r"Nothing was changed.*clean-data"):
        secrets.load_or_make(file)
    assert file.read_text() == text


def test_litellm_takes_both_keys(tmp_path: Path) -> None:
    found = secrets.load_or_make(tmp_path / "secrets.json")
    assert found["litellm_master_key"].startswith("sk-")
    assert found["litellm_salt_key"] != found["litellm_master_key"]
