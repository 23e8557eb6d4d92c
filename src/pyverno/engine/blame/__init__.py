"""Which field of the object a failure comes from, found out after the review, so that reviews pay nothing for it.

Blame never changes a verdict. Where it finds no field the result has none, and reports fall back to the whole object.
"""

from __future__ import annotations
