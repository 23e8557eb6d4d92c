"""The `random` function: makes a text that matches a regular expression.

Randomness comes from the runtime's host alone, so that a run can be replayed.
"""

from __future__ import annotations

from typing import Final

from pyverno.errors import EvaluationError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.cost import Cost
from pyverno.lang.jmespath.function import STRING, function
from pyverno.lang.regex.generator import generate_text
from pyverno.lang.runtime import Runtime

__all__ = ["FUNCTIONS"]


@function(
    "random",
    STRING,
    returns=STRING,
    cost=Cost(per_step=1),
    note="makes a random text that matches a regular expression",
)
def random(runtime: Runtime, pattern: str) -> JSON:
    """Make a text that matches an RE2 expression; `*` and `+` repeat up to 4096 times.

    Positions such as `^` and `\\b` are not looked at. At most 64 KiB are made.

    >>> length(random('[0-9a-z]{8}'))
    8
    >>> regex_match('^(ab|cd)x?$', random('(ab|cd)x?'))
    true
    """
    if not pattern:
        raise EvaluationError("no pattern provided")
    made = generate_text(pattern, runtime.host.random_bits, runtime.budget)
    runtime.budget.produce(len(made))
    return made


FUNCTIONS: Final = (random,)
