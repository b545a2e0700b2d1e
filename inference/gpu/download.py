"""Fetches one repository at one commit. Run by the Python that holds huggingface_hub.

    python download.py REPO REVISION PROGRESS_FILE

Broken off, it keeps the files that were whole and fetches the others when it is run again. Writes
{"total", "sizes"} into PROGRESS_FILE at first, {"code", "detail"} when it fails; exits 0 when all
files are there.
"""

import json
import os
import sys

CODES = {
    "RepositoryNotFoundError": "repo_missing",
    "RevisionNotFoundError": "revision_missing",
    "GatedRepoError": "repo_gated",
}


def main() -> int:
    from huggingface_hub import HfApi, snapshot_download

    repo, revision, progress = sys.argv[1:]
    try:
        info = HfApi().model_info(repo, revision=revision, files_metadata=True, timeout=30)
        if info.sha != revision:
            return fail(progress, "revision_missing", f"the hub answers {info.sha}")
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
        write(progress, {"total": sum(sizes.values()), "sizes": sizes})
        snapshot_download(repo, revision=revision, max_workers=4)
    # The hub's own errors, those of whichever HTTP client and download backend its version brings,
    # and OSError have no base class in common; this process ends with whatever it was, told.
    except Exception as error:  # noqa: BLE001
        return fail(progress, code_of(error), f"{type(error).__name__}: {error}"[:300])
    return 0


def code_of(error: BaseException) -> str:
    for kind in type(error).__mro__:
        if kind.__name__ in CODES:
            return CODES[kind.__name__]
    return "disk_short" if isinstance(error, OSError) and error.errno == 28 else "hub_unreachable"


def fail(progress: str, code: str, detail: str) -> int:
    write(progress, {"code": code, "detail": detail})
    return 1


def write(path: str, content: dict[str, object]) -> None:
    """Adds to what is there: the total stays known after a failure."""
    try:
        with open(path) as file:
            content = {**json.load(file), **content}
    except (OSError, ValueError):
        pass
    with open(f"{path}.new", "w") as file:
        json.dump(content, file)
    os.replace(f"{path}.new", path)


if __name__ == "__main__":
    sys.exit(main())
