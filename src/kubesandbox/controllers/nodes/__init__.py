"""The node, its kubelet and the scheduler."""

from __future__ import annotations
