"""The second process of an engine, as vLLM's EngineCore: same process group, own life.

It only sleeps. A SIGKILL of the API server leaves it behind, as vLLM leaves its own; without a
parent it takes a SIGTERM, else it leaves that to the parent. Its death ends the API server.
"""

import ctypes
import os
import signal
import socket
import sys
import time
from types import FrameType

_PR_SET_NAME = 15
_NAME = b"VLLM::EngineCor"  # all that the kernel keeps


class Core:
    def __init__(self, *, not_for_it: socket.socket) -> None:
        """The core must not keep the port that an API server leaves behind."""
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            not_for_it.close()
            _sleep_as_core(parent)

    def has_died(self) -> bool:
        """Once True, there is nothing left to wait for."""
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
        except ChildProcessError:
            return True

    def end(self) -> None:
        if not self.has_died():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def _sleep_as_core(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, _NAME, 0, 0, 0)

    def on_term(number: int, frame: FrameType | None) -> None:
        if os.getppid() != parent:
            os._exit(0)

    signal.signal(signal.SIGTERM, on_term)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(f"(EngineCore pid={os.getpid()}) INFO Initializing a V1 LLM engine", flush=True)
    while True:
        time.sleep(3600)
