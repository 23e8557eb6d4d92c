"""The webhook configurations of the cluster: planned from policies and settings, registered, reconciled."""

from __future__ import annotations
