"""The in-memory state of a cluster: kinds, namespaces, policies, roles, global context; and hosts built on it."""

from __future__ import annotations
