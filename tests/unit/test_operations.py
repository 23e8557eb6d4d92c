"""The counter of operations that tests of growth use."""

from __future__ import annotations

import threading

from tests.support.operations import growth, operations


def test_only_operations_of_the_calling_thread_count() -> None:
    """A thread that another test has left to end changes no figure."""

    def count() -> int:
        return operations(lambda: [index + 1 for index in range(50_000)])

    alone = count()
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            pass

    thread = threading.Thread(target=work)
    thread.start()
    try:
        beside = [count() for _ in range(3)]
    finally:
        is_over.set()
        thread.join()
    assert [alone] * 3 == beside


def test_growth_is_that_of_the_work() -> None:
    """Twice the work gives twice the operations, the square of it four times."""
    assert 1.9 < growth(lambda size: lambda: [index + 1 for index in range(100 * size)], 20) < 2.1
    assert 3.8 < growth(lambda size: lambda: [0 for _ in range(20 * size) for _ in range(size)], 20) < 4.2
