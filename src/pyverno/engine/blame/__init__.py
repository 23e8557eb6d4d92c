"""The field of the object that a failure comes from, found after the review, so that reviews pay nothing for it.

Blame never changes a verdict. Where it finds no field the result has none, and reports fall back to the whole object.
"""

from __future__ import annotations
