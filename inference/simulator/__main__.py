"""`python -m inference.simulator [serve] MODEL [vllm flags]`."""

import os
import sys

from inference.simulator import lifecycle
from inference.simulator.flags import parse
from inference.simulator.settings import Settings


def main() -> int:
    options = parse(sys.argv[1:])
    return lifecycle.run(options=options, settings=Settings.from_environ(os.environ))


if __name__ == "__main__":
    sys.exit(main())
