"""A small mail server on loopback that keeps what it gets and can behave badly.

`behave` decides what happens to the next mails: "accept"; "later" (451) or "never" (550) after
DATA; "drop" (the connection ends after the mail was taken, before the answer); "hang" (no answer
at all).
"""

import asyncio
import email
import email.policy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage


class SmtpServer:
    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.behave = "accept"
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server: asyncio.Server | None = None

    def _do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(5)

    def start(self) -> None:
        """Listens; after `stop`, on the same port again."""
        self._server = self._do(asyncio.start_server(self._talk, "127.0.0.1", self.port))
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        if self._server:
            self._loop.call_soon_threadsafe(self._server.close)
            self._do(asyncio.sleep(0.01))
            self._server = None

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(line: str) -> None:
            writer.write(line.encode() + b"\r\n")

        say("220 fake")
        while line := await reader.readline():
            verb = line.strip().upper()
            if verb.startswith((b"EHLO", b"HELO", b"MAIL", b"RCPT", b"RSET", b"NOOP")):
                say("250 ok")
            elif verb == b"DATA":
                say("354 go on")
                raw = await reader.readuntil(b"\r\n.\r\n")
                if not self._take(raw, say):
                    break
            elif verb == b"QUIT":
                say("221 bye")
                break
        writer.close()

    def _take(self, raw: bytes, say) -> bool:
        """Returns whether the conversation goes on."""
        if self.behave == "later":
            say("451 later")
            return True
        if self.behave == "never":
            say("550 never")
            return True
        self.mails.append(email.message_from_bytes(raw[:-5], policy=email.policy.default))
        if self.behave == "drop":
            return False
        if self.behave == "hang":
            return True
        say("250 taken")
        return True


@contextmanager
def smtp_server() -> Iterator[SmtpServer]:
    server = SmtpServer()
    server.start()
    try:
        yield server
    finally:
        server.close()
