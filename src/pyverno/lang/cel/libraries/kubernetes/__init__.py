"""Kubernetes' own CEL libraries: quantities, versions, URLs, regular expressions, lists and JSON patch keys."""

from __future__ import annotations
