"""A JMESPath expression calls a function that does not exist.

Kyverno accepts such a policy, and the rule ends with an error for every object that it matches.

Example::

    - key: "{{ lenght(request.object.spec.containers) }}"
      operator: GreaterThan
      value: 3

Write instead::

    - key: "{{ length(request.object.spec.containers) }}"
      operator: GreaterThan
      value: 3
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.lints.expressions import blank_literals, expressions
from pyverno.compiler.lints.lint import Problem, Subject, Workspace
from pyverno.lang.jmespath.functions import FUNCTIONS
from pyverno.lazyregex import regex
from pyverno.spelling import did_you_mean

__all__ = ["check"]

_CALL = regex(r"(?<![A-Za-z0-9_.\"])([A-Za-z_][A-Za-z0-9_]*)\(")


def check(subject: Subject, _workspace: Workspace) -> Iterator[Problem]:
    """Yield the calls of unknown functions."""
    for each in expressions(subject):
        if "(" not in each.text:
            continue
        for found in _CALL.finditer(blank_literals(each.text)):
            name = found[1]
            if name not in FUNCTIONS:
                text = f"there is no function `{name}`{did_you_mean(name, FUNCTIONS)}"
                yield Problem(each.path, text, each.offset + found.start())
