"""Validation of Pods, their containers and volumes, and the workloads that create them."""

from __future__ import annotations
