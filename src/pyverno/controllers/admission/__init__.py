"""The admission controller, and the work that follows its answers: reports, UpdateRequests, policy status."""

from __future__ import annotations
