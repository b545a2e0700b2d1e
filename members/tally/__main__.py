"""python -m members.tally FILE: counts a downloaded file of ballots again.

Status 1: no file of ballots; 2: a receipt is in it twice, or more ballots than people could vote.
"""

import argparse
import sys
from pathlib import Path

from members.tally import BadFile, count, decide, digest, doubts, read
from members.tally.table import SENTENCES, lines


def main() -> int:
    options = _arguments()
    try:
        found = read(Path(options.file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, BadFile) as problem:
        sys.stderr.write(f"{options.file}: {problem}\n")
        return 1
    counted = count(found.options, (ranking for _, ranking in found.ballots))
    seed = digest(found.ballots)
    roll = found.roll if options.roll is None else options.roll
    percent = found.percent if options.quorum is None else options.quorum
    outcome = decide(counted, seed=seed, roll=roll, percent=percent)
    sys.stdout.writelines(f"{line}\n" for line in lines(counted, outcome, seed, options.language))
    wrong = doubts(found, roll)
    say = SENTENCES[options.language]
    sys.stderr.writelines(f"{say[code].format(**named)}\n" for code, named in wrong)
    return 2 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m members.tally", description=__doc__)
    parser.add_argument("file", help="ballots.csv or ballots.json, as published")
    parser.add_argument("--roll", type=int, help="how many could vote (a CSV file does not say)")
    parser.add_argument("--quorum", type=int, help="percent of the roll; 30 unless the file says")
    parser.add_argument("--language", choices=sorted(SENTENCES), default="en")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
