"""The fast tier of patterns: generated pass-checks and failure paths."""

from __future__ import annotations
