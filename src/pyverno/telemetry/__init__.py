"""Metrics, logs and traces of every front door, under one registry of names."""

from __future__ import annotations
