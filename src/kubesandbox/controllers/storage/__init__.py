"""Volumes and claims."""

from __future__ import annotations
