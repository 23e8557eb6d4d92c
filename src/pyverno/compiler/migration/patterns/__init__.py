"""Patterns as CEL: maps, lists and anchors in `maps`, label keys in `labels`, leaves in `leaves`, `wildcards` in texts.

`holds` is the one way in. The law: on an admitted object the expression is true exactly where the pattern does not
fail; where it fails, the expression is false or an error.
"""

from __future__ import annotations

from pyverno.compiler.migration.patterns.maps import any_holds, holds, parts_of

__all__ = ["any_holds", "holds", "parts_of"]
