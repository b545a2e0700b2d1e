"""Commands of a GPU host: `join` it to a fleet, write its systemd `units`, print a `report`."""

import argparse
import getpass
import json
import os
import shlex
import sys
from pathlib import Path

from inference.gpu import PROJECT, devices, join, report, weights
from inference.gpu.drivers import choose
from inference.gpu.drivers.systemd import units
from inference.gpu.engines import Engines
from inference.gpu.host import Host, HostError
from inference.gpu.state import HostState, write_atomically


def main() -> int:
    options = _parser().parse_args()
    try:
        return int(options.run(options))
    except (join.JoinRefused, HostError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def run_join(options: argparse.Namespace) -> int:
    file = Path(options.file).absolute()
    join.check_site(options.site)
    join.make_sure_of(file, replace=options.replace)
    given = _given(options)
    probe = Host.from_environ({**given, **_PLACEHOLDERS})
    print("Looking at the GPUs …")
    try:
        gpus = devices.read(probe)
    except devices.DevicesUnavailable as error:
        raise join.JoinRefused(f"{error}. Install the driver, or use --devices none.") from None
    settings = join.exchange(
        options.site,
        _token(options),
        address=options.address,
        gpus=gpus,
        disk_free_mib=weights.free_mib(Path(given["HF_HOME"])),
    )
    write_atomically(file, join.environment_file(given, settings))
    print(f"Joined as {settings['NAN_GPU_NAME']} with {len(gpus)} GPUs. Settings: {file}")
    print("Start the worker:\n  " + _command(file, settings["NAN_GPU_NAME"]))
    return 0


# Stand for what only the site knows, while the options are checked.
_PLACEHOLDERS = {"NAN_ROLE": "gpu", "NAN_GPU_NAME": "new", "ENGINE_API_KEY": "unknown"}


def run_units(options: argparse.Namespace) -> int:
    host = Host.from_environ()
    values = {
        "USER": options.user,
        "NAME": host.name,
        "PROJECT": str(PROJECT),
        "PYTHON": sys.executable,
        "STATE": str(host.state),
        "HF_HOME": str(host.hf_home),
        "ENV_FILE": str(Path(options.file).absolute()),
    }
    folder = Path(options.write)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in units(values).items():
        (folder / name).write_text(text)
        print(folder / name)
    return 0


def run_report(options: argparse.Namespace) -> int:
    host = Host.from_environ()
    state = HostState(host.state)
    engines = Engines(host, state, choose(host))
    with state.locked():
        print(json.dumps(report.build(host, state, engines), indent=2))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m inference.gpu")
    commands = parser.add_subparsers(required=True)
    new = commands.add_parser("join", help="make this machine a GPU host of a fleet")
    new.add_argument("site", help="https://…, from the join page")
    new.add_argument("token", nargs="?", help="better in NAN_JOIN_TOKEN or on standard input")
    new.add_argument("--address", required=True, help="of this host, loopback or VPN")
    new.add_argument("--file", default="gpu.env")
    new.add_argument("--replace", action="store_true")
    new.add_argument("--state", default=str(PROJECT / ".nan/gpu"))
    new.add_argument("--driver", choices=("process", "systemd", "compose"), default="process")
    new.add_argument("--devices", default="nvidia", help="nvidia, none, simulated:2x24576")
    new.add_argument("--engine", choices=("vllm", "simulator"), default="vllm")
    new.add_argument("--engine-home", help="virtual environment that holds vllm")
    new.add_argument("--image", help="container image with vllm, by digest (driver compose)")
    new.add_argument("--weights", default=str(Path.home() / ".cache/huggingface"), help="HF_HOME")
    new.set_defaults(run=run_join)
    written = commands.add_parser("units", help="write the systemd units of this host")
    written.add_argument("--write", required=True, metavar="FOLDER")
    written.add_argument("--user", default=getpass.getuser())
    written.add_argument("--file", default="gpu.env")
    written.set_defaults(run=run_units)
    commands.add_parser("report", help="what is reported now").set_defaults(run=run_report)
    return parser


def _given(options: argparse.Namespace) -> dict[str, str]:
    found = {
        "NAN_GPU_ADDRESS": options.address,
        "NAN_GPU_STATE": str(Path(options.state).absolute()),
        "NAN_GPU_DRIVER": options.driver,
        "NAN_GPU_DEVICES": options.devices,
        "NAN_ENGINE_KIND": options.engine,
        "NAN_ENGINE_HOME": options.engine_home,
        "NAN_ENGINE_IMAGE": options.image,
        "HF_HOME": str(Path(options.weights).absolute()),
    }
    return {name: value for name, value in found.items() if value}


def _token(options: argparse.Namespace) -> str:
    token = options.token or os.environ.get("NAN_JOIN_TOKEN")
    if not token and sys.stdin.isatty():
        token = getpass.getpass("Token: ")
    token = (token or sys.stdin.readline()).strip()
    if not token:
        raise join.JoinRefused("No token was given. The join page of the site shows one.")
    return token


def _command(file: Path, name: str) -> str:
    """For a shell; `units` writes the same as a service."""
    celery = f"{shlex.quote(sys.executable)} -m celery -A nan worker -Q gpu.{name} -n gpu-{name}@%h"
    start = f"set -a; . {shlex.quote(str(file))}; set +a; {celery} -P threads -c 2"
    return f"cd {shlex.quote(str(PROJECT))} && ({start})"


if __name__ == "__main__":
    sys.exit(main())
