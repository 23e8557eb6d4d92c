"""Mutants of policies: small changes that a good test suite notices.

Each module makes the mutants of one part of a policy: what it selects, its conditions, its patterns, its expressions. A
mutant is the policy document with one change. Changes that certainly mean the same are not made.
"""

from __future__ import annotations
