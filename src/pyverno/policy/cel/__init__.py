"""The CEL policy kinds as written: Kyverno's own, their exceptions, and Kubernetes' admission policies."""

from __future__ import annotations
