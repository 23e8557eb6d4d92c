"""Admission webhooks: which are called for a request, how, and what their answers do to it."""

from __future__ import annotations
