"""What many ask for at the same moment is written by one of them."""

import threading

from inference.status.written import Written
from tests.waiting import wait_until


def test_the_same_is_written_once() -> None:
    written, calls = Written(), []

    def write() -> bytes:
        calls.append(1)
        return b"text"

    assert [written.get("es", 1, write) for _ in range(3)] == [b"text"] * 3
    assert (written.get("en", 1, write), written.get("es", 2, write)) == (b"text", b"text")
    assert len(calls) == 3


def test_while_one_writes_others_get_the_last_one_or_wait_for_the_first() -> None:
    written, go_on, begun = Written(), threading.Event(), threading.Event()
    written.get("es", 1, lambda: b"one")

    def slow() -> bytes:
        begun.set()
        assert go_on.wait(10)
        return b"two"

    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(written.get("es", 2, slow)))]
    threads[0].start()
    assert begun.wait(10)
    assert written.get("es", 2, lambda: b"never") == b"one"
    first = threading.Thread(target=lambda: found.append(written.get("en", 2, lambda: b"new")))
    threads.append(first)
    first.start()
    assert found == []
    go_on.set()
    wait_until(lambda: sorted(found) == [b"new", b"two"], seconds=10, what="both")
    for thread in threads:
        thread.join()
    assert written.get("es", 2, lambda: b"never") == b"two"


def test_what_could_not_be_written_is_tried_again() -> None:
    written = Written()

    def breaks() -> bytes:
        raise ValueError

    for _time in range(2):
        try:
            written.get("es", 1, breaks)
        except ValueError:
            continue
        raise AssertionError("it was written")
    assert written.get("es", 1, lambda: b"text") == b"text"
