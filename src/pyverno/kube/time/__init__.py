"""Instants, durations, calendars and cron lines with Go's grammar and range."""

from __future__ import annotations
