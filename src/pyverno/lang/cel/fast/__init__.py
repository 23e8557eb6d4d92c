"""The fast tier of CEL: generated pass-checks and their cost account."""

from __future__ import annotations
