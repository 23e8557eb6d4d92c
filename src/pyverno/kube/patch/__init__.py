"""Patches of JSON documents: JSON Patch, JSON Merge Patch, and both dialects of strategic merge."""

from __future__ import annotations
