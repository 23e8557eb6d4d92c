"""Kyverno policies as Kubernetes admission policies: which are eligible, their translation, their reconciliation."""

from __future__ import annotations
