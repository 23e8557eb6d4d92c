"""Validation of policy documents: every error and warning that Kyverno's policy webhook reports."""

from __future__ import annotations
