"""Requests that wait for the API server: bounded for each caller, looked at again, given up in the end."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pyverno.controllers.admission import questions
from pyverno.controllers.admission.questions import Questions, Refusals


def test_a_question_is_asked_again_until_it_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look comes later than the one before; the last one ends it."""
    monkeypatch.setattr(questions, "_PAUSES", (0.0, 0.0))
    looks, lost = [], []

    async def run() -> None:
        def again(item: str, number: int) -> None:
            looks.append((item, number))
            waiting.put(item, "10.0.0.1", number, "not stored")

        waiting = Questions(again, lambda item, reason: lost.append((item, reason)), 10)
        waiting.put("a", "10.0.0.1", 0, "not stored")
        while len(waiting):
            await asyncio.sleep(0)

    asyncio.run(run())
    assert ([("a", 1), ("a", 2)], [("a", "not stored")]) == (looks, lost)


def test_questions_of_a_source_are_bounded() -> None:
    """A flood of one caller loses its own oldest questions, and never those of others."""
    lost: list[str] = []

    async def run() -> int:
        waiting = Questions(lambda item, looks: None, lambda item, reason: lost.append(item), 2)
        waiting.put("real", "10.0.0.1", 5, "")
        for number in range(4):
            waiting.put(f"forged-{number}", "10.6.6.6", 5, "")
        return len(waiting)

    assert 3 == asyncio.run(run())
    assert ["forged-0", "forged-1"] == lost


def test_all_questions_together_are_bounded() -> None:
    """Callers with many addresses find no more room than a few."""
    lost: list[str] = []

    async def run() -> int:
        waiting = Questions(lambda item, looks: None, lambda item, reason: lost.append(item), 1)
        for number in range(6):
            waiting.put(str(number), f"10.6.6.{number}", 5, "")
        return len(waiting)

    assert (4, ["4", "5"]) == (asyncio.run(run()), lost)


def test_refusals_are_counted_and_logged_at_a_limited_rate(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand forged requests are one line in the log, with the caller."""
    counted: list[str] = []
    refusals = Refusals("update-requests", counted.append)
    with caplog.at_level(logging.WARNING):
        for _ in range(1000):
            refusals.note("ConfigMap `a` is not created yet", "10.6.6.6")
    assert (1000, 1) == (len(counted), len(caplog.records))
    assert "10.6.6.6" == vars(caplog.records[0])["fields"]["caller"]
