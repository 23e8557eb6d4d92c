"""Kyverno's own CEL libraries: cluster access, images, data formats, certificates, randomness."""

from __future__ import annotations
