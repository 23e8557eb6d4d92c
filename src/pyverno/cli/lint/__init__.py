"""`pyverno lint`: probable mistakes in policies that Kyverno accepts."""

from __future__ import annotations
