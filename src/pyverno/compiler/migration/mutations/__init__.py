"""Mutate rules as MutatingPolicies: strategic merges and JSON patches become lists of JSONPatch operations.

A merge is followed step by step as the engine does it: where a parent is missing it is added, a list that merges by a
key is changed element by element, and what the old dialect decides by an anchor becomes the condition of an operation.
A merge of plain fields becomes an ApplyConfiguration, which reads better.
"""

from __future__ import annotations
