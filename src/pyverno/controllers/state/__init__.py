"""What a replica knows about its cluster: kinds, namespaces, policies, roles, global context; and hosts made of it."""

from __future__ import annotations
