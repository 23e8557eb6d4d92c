"""The times of schedules: cron expressions in time zones, across changes of daylight saving time."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from pyverno.controllers.cleanup.schedule import next_due, read_time, write_time
from pyverno.errors import ValueSyntaxError

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")


def due(schedule: str, after: str, zone: object = UTC) -> str:
    """Return the next due time as a timestamp."""
    start = read_time(after)
    assert start is not None
    found = next_due(schedule, start, zone)  # type: ignore[arg-type]  # zones come from several libraries
    assert found is not None
    return write_time(found)


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        ("*/5 * * * *", UTC, "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"),
        ("*/5 * * * *", UTC, "2026-01-01T00:04:59Z", "2026-01-01T00:05:00Z"),
        ("0 4 * * 1", BERLIN, "2026-01-01T00:00:00Z", "2026-01-05T03:00:00Z"),
        ("0 4 * * *", NEW_YORK, "2026-01-01T00:00:00Z", "2026-01-01T09:00:00Z"),
        # 02:00 to 03:00 is skipped in this night
        ("30 2 * * *", BERLIN, "2026-03-28T12:00:00Z", "2026-03-29T01:30:00Z"),
        ("0 4 * * *", BERLIN, "2026-03-28T12:00:00Z", "2026-03-29T02:00:00Z"),
        # 02:00 to 03:00 occurs twice in this night, and the policy runs once
        ("30 2 * * *", BERLIN, "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"),
        ("30 2 * * *", BERLIN, "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"),
        ("0 0 L * *", UTC, "2026-02-01T00:00:00Z", "2026-02-28T00:00:00Z"),
        ("@daily", UTC, "2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z"),
    ],
)
def test_the_next_time_is_that_of_the_zone(schedule: str, zone: object, after: str, expected: str) -> None:
    """This holds on the nights of daylight saving changes as well."""
    assert expected == due(schedule, after, zone)


def test_a_schedule_can_end() -> None:
    """A schedule for a past year has no next time."""
    assert next_due("0 0 0 1 1 * 2020", read_time("2026-01-01T00:00:00Z") or 0) is None


def test_what_only_the_other_parser_reads_is_an_error() -> None:
    """Kyverno admits such a schedule as well but cannot run it."""
    with pytest.raises(ValueSyntaxError):
        next_due("@every 1h", 0)


def test_an_invalid_time_is_an_error() -> None:
    """Otherwise the policy would run at once."""
    with pytest.raises(ValueSyntaxError, match="`yesterday` is no time"):
        read_time("yesterday")
