"""Branches of policies: those that tests can reach, and those that the trace of one review has reached.

A branch is one outcome of one place: a match block that fits, a condition that is false, an anchor whose key is absent,
an operand of CEL that is true. `sites` lists the branches of a document, `taken` reads them from an explanation.
"""

from __future__ import annotations
