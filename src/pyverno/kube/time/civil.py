"""The proleptic Gregorian calendar on plain integers, for any year (Python's datetime stops at 9999).

Days are counted from 1970-01-01.
"""

from __future__ import annotations

__all__ = ["civil_from_days", "days_before_month", "days_from_civil", "days_in_month", "is_leap", "weekday", "year_day"]

_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)


def is_leap(year: int) -> bool:
    """Return whether a year has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_before_month(month: int) -> int:
    """Return the days of a common year before the month (1 to 13)."""
    return _BEFORE[month - 1]


def days_in_month(year: int, month: int) -> int:
    """Return the number of days of a month (1 to 12)."""
    return 29 if month == 2 and is_leap(year) else _BEFORE[month] - _BEFORE[month - 1]


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01; months and days beyond their range carry over.

    >>> days_from_civil(1970, 1, 2), days_from_civil(2000, 2, 30) == days_from_civil(2000, 3, 1)
    (1, True)
    """
    year += (month - 1) // 12
    month = (month - 1) % 12 + 1
    past = year - 1
    leap_day = 1 if month > 2 and is_leap(year) else 0
    return past * 365 + past // 4 - past // 100 + past // 400 + _BEFORE[month - 1] + leap_day + day - 719163


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a day number.

    >>> civil_from_days(0)
    (1970, 1, 1)
    """
    shifted = days + 719468
    era, day_of_era = divmod(shifted, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def weekday(days: int) -> int:
    """Return the day of the week of a day number, 0 for Sunday."""
    return (days + 4) % 7


def year_day(year: int, month: int, day: int) -> int:
    """Return the day of the year, 1 for January 1st."""
    return _BEFORE[month - 1] + day + (1 if month > 2 and is_leap(year) else 0)
