"""Branches of policies: what tests of a policy can reach, and what a trace of one review reached.

A branch is one outcome of one place: a match block that fits, a condition that is false, an anchor whose key is absent,
an operand of CEL that is true. `sites` lists the branches of a document, `taken` reads them from an explanation.
"""

from __future__ import annotations
