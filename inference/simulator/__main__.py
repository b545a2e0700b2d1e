"""`python -m inference.simulator [serve] MODEL [vllm flags]`."""

import os
import sys

from inference.simulator import lifecycle
from inference.simulator.flags import parse
from inference.simulator.model import Model
from inference.simulator.settings import Settings
from inference.simulator.startup import refused_flag


def main() -> int:
    argv = sys.argv[1:]
    options = parse(argv)
    model = Model.of(options, os.environ)
    settings = Settings.from_environ(
        os.environ, model.names, context=model.context, runner=model.runner(options.runner)
    )
    if refusal := refused_flag(argv, settings):
        print(refusal, file=sys.stderr)
        return 2
    return lifecycle.run(options=options, settings=settings, model=model)


if __name__ == "__main__":
    sys.exit(main())
