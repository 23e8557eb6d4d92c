"""Two sets of policies held against each other on generated objects: a counterexample, or a record of what was tried.

Nothing here proves that two policies are equal, and no output claims it: a comparison without a counterexample states
its inputs, verdicts and seed.
"""

from __future__ import annotations
