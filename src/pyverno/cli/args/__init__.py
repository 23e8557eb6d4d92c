"""Flags and arguments: tables of flags, their parsing with and without click, help sections, errors."""

from __future__ import annotations
