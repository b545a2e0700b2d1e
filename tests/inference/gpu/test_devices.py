"""GPUs and who holds their memory."""

from pathlib import Path

import pytest

from inference.gpu import devices
from tests.inference.gpu.rig import Rig

# As nvidia-smi 575 prints them with --format=csv,noheader,nounits.
GPUS = """0, GPU-aaa, NVIDIA RTX PRO 6000 Blackwell, 97887, 60000
1, GPU-bbb, NVIDIA RTX PRO 6000 Blackwell, 97887, 4
"""
APPS = """GPU-aaa, 4242, 50000
GPU-aaa, 4243, 9000
"""


@pytest.fixture
def smi(rig: Rig, tmp_path: Path) -> Path:
    """A program of that name in the worker's PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    rig.environ |= {"NAN_GPU_DEVICES": "nvidia", "PATH": f"{folder}:/usr/bin:/bin"}
    return folder / "nvidia-smi"


def answer(smi: Path, gpus: str, apps: str, *, more: str = "") -> None:
    smi.write_text(
        "#!/bin/sh\ncase $1 in\n"
        f"--query-gpu=*) cat <<'E'\n{gpus}E\n;;\n--query-compute-apps=*) cat <<'E'\n{apps}E\n;;\n"
        f"esac\n{more}"
    )
    smi.chmod(0o755)


def read(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> list[devices.Gpu]:
    monkeypatch.setenv("PATH", rig.environ["PATH"])
    return devices.read(rig.host)


def test_real_gpus_with_what_is_ours(rig: Rig, smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(smi, GPUS, APPS)
    found = [gpu.to_json({4242}) for gpu in read(rig, monkeypatch)]
    name = "NVIDIA RTX PRO 6000 Blackwell"
    assert found == [
        {"index": 0, "name": name, "total_mib": 97_887, "used_mib": 60_000, "foreign_mib": 9000},
        {"index": 1, "name": name, "total_mib": 97_887, "used_mib": 4, "foreign_mib": 0},
    ]


def test_a_driver_that_names_no_figure(
    rig: Rig, smi: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(smi, GPUS, "GPU-aaa, 4242, [N/A]\n")
    assert [gpu.held for gpu in read(rig, monkeypatch)] == [{}, {}]


@pytest.mark.parametrize(
    ("gpus", "more"),
    [
        ("", "exit 9"),
        ("Unable to determine the device handle\n", ""),
        ("0, a, b, [N/A], 1\n", ""),
        ("", "printf '\\377\\n'"),
    ],
)
def test_a_driver_in_trouble(
    rig: Rig, smi: Path, monkeypatch: pytest.MonkeyPatch, gpus: str, more: str
) -> None:
    answer(smi, gpus, "", more=more)
    with pytest.raises(devices.DevicesUnavailable):
        read(rig, monkeypatch)
    assert rig.report()["gpus"] == []


def test_a_driver_that_hangs(rig: Rig, smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smi.write_text("#!/bin/sh\nexec sleep 30\n")
    smi.chmod(0o755)
    monkeypatch.setattr(devices, "SECONDS", 0.2)
    with pytest.raises(devices.DevicesUnavailable, match="TimeoutExpired"):
        read(rig, monkeypatch)


def test_no_driver(rig: Rig, smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(devices.DevicesUnavailable, match="FileNotFoundError"):
        read(rig, monkeypatch)


def test_a_host_without_gpus(rig: Rig) -> None:
    rig.environ["NAN_GPU_DEVICES"] = "none"
    assert rig.report()["gpus"] == []


def test_simulated_ones_are_files(rig: Rig) -> None:
    folder = rig.host.state / "gpus" / "gpu1"
    folder.mkdir(parents=True)
    (folder / "99").write_text("700")
    (folder / ".98").write_text("1")
    (folder / "97").write_text("")
    found = rig.report()["gpus"]
    assert [(gpu["used_mib"], gpu["foreign_mib"]) for gpu in found] == [(0, 0), (700, 700)]
