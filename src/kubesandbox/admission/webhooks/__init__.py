"""Admission webhooks: selection, calls, and the effect of their responses on a request."""

from __future__ import annotations
