"""Verification of images as part of a rule: one digest per tag and review, its signatures, and what was found before.

`images.verification` states whether a signature satisfies an attestor; this package fetches what it needs through the
broker, once, and never takes an error for "no signature".
"""

from __future__ import annotations
