"""Starts LiteLLM as its command `litellm` does, with the gate in front of its application.

By a program and not by configuration: LiteLLM runs callbacks after it has read a body, and some of
its fields act before that.
"""

from __future__ import annotations

import sys

from litellm import run_server
from litellm.proxy.proxy_server import app
from nan_counts import left, resets_in
from nan_gate import Gate
from nan_pauses import Settled

if __name__ == "__main__":
    app.add_middleware(Settled)
    app.add_middleware(Gate, left=left, resets_in=resets_in)  # the last one added is the outermost
    sys.exit(run_server())
