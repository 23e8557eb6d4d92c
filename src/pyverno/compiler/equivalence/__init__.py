"""Comparison of two sets of policies on generated objects: a counterexample, or a record of the tested requests.

Nothing here proves that two policies are equal, and no output claims it: a comparison without a counterexample states
its inputs, verdicts and seed.
"""

from __future__ import annotations
