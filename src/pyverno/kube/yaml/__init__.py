"""YAML as Kubernetes reads and writes it, with the source location of every node."""

from __future__ import annotations
