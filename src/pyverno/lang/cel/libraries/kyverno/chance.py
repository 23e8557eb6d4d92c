"""Kyverno's libraries of time and chance: `time.now`, cron texts, random texts.

Clock and randomness come from the runtime's host, so that a run can be recorded.
"""

from __future__ import annotations

from typing import Final

from pyverno.errors import EvaluationError, HostError
from pyverno.lang.cel.arithmetic import MIN_SECONDS
from pyverno.lang.cel.declarations import Declaration, Library, function
from pyverno.lang.cel.runtime.evaluation import Evaluation
from pyverno.lang.cel.scalars import Duration, Timestamp
from pyverno.lang.cel.times import civil
from pyverno.lang.cel.values import Value
from pyverno.lang.cel.work import instant, text_size
from pyverno.lang.regex.generator import generate_text

__all__ = ["RANDOM", "TIME"]

DEFAULT_PATTERN: Final = "[0-9a-z]{8}"


@function("time.now", "() -> timestamp", in_context=True, work=instant)
def now(evaluation: Evaluation) -> Timestamp:
    """The current time."""
    try:
        return Timestamp(evaluation.runtime.host.now())
    except HostError as error:
        raise EvaluationError(error.message) from None


@function("time.toCron", "(timestamp) -> string", work=instant)
def to_cron(value: Timestamp) -> str:
    """A cron line for that minute of that day, in the zone of the timestamp.

    CEL: time.toCron(timestamp('2022-04-11T03:14:05-07:00')) ⇒ '14 3 11 4 1'
    """
    local = civil(value, value.offset)
    hours, minutes = local.second_of_day // 3_600, local.second_of_day // 60 % 60
    return f"{minutes} {hours} {local.date.day} {local.date.month} {local.weekday}"


@function("time.truncate", "(timestamp, duration) -> timestamp", work=instant)
def truncate(value: Timestamp, unit: Duration) -> Timestamp:
    """The timestamp cut down to a multiple of a duration since the year 1.

    CEL: time.truncate(timestamp('2021-01-02T17:08:00Z'), duration('1h')) == timestamp('2021-01-02T17:00:00Z') ⇒ true
    """
    if unit.ns <= 0:
        return value
    since_year_one = value.ns - MIN_SECONDS * 10**9
    return Timestamp(value.ns - since_year_one % unit.ns, value.offset)


TIME: Final = Library("kyverno.time", (now, to_cron, truncate), introduced="1.17", doc="Clock and cron.")


def _random(evaluation: Evaluation, pattern: str = DEFAULT_PATTERN) -> str:
    """A random text that matches a pattern, by default eight digits and small letters; at most 64 KiB."""
    try:
        text = generate_text(pattern, evaluation.runtime.host.random_bits, evaluation.runtime.budget)
    except HostError as error:
        raise EvaluationError(error.message) from None
    evaluation.produce(len(text))
    return text


def _pattern_work(operands: tuple[Value, ...]) -> int:
    return text_size(operands[0]) if operands else 0


def _random_declaration(name: str, since: tuple[int, ...]) -> Declaration:
    return function(name, "(string) -> string", "() -> string", in_context=True, work=_pattern_work, since=since)(
        _random
    )


RANDOM: Final = Library(
    "kyverno.random",
    (_random_declaration("random", (0,)), _random_declaration("random.random", (1, 18))),
    introduced="1.17",
    doc="Random texts.",
)
