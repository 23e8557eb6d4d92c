"""The checks of `pyverno lint`, one module each: its docstring documents it, its function `check` yields problems."""

from __future__ import annotations
