"""Admission plugins in process: quota, limits, priority, Pod Security, service accounts and others."""

from __future__ import annotations
