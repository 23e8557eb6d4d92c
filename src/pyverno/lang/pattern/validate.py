"""Validation patterns: compile once, then match resources.

`Pattern.match` is exact: verdict, path and text of the upstream engine. `Pattern.passes` is a generated function for
the common case that everything is fine, `Pattern.failing_path` one for most of what is not. Each is made on first
use: most policies of a cluster never need the exact closures, which take more memory than everything else.
"""

from __future__ import annotations

from pyverno.errors import BudgetExceededError, ExpressionError
from pyverno.kube.json import JSON
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.lang.pattern.checks import Observer, element_check
from pyverno.lang.pattern.fast.failpath import FailPath, compile_failpath
from pyverno.lang.pattern.fast.passcheck import PassCheck, compile_passes
from pyverno.lang.pattern.outcome import Cause, Outcome, Problem, Status, path_text
from pyverno.lang.pattern.steps import Check, Ledger

__all__ = ["Pattern", "compile_pattern"]

_PASS = Outcome(Status.PASS)
_SHALLOW = 32
_TOO_DEEP = "the pattern is nested too deeply"


class Pattern:
    """A compiled validation pattern; immutable and safe to share between threads."""

    __slots__ = ("_check", "_fails", "_passes", "float_numbers", "tree")

    def __init__(self, tree: JSON, *, float_numbers: bool) -> None:
        self.tree = tree
        self.float_numbers = float_numbers
        self._check: Check | None = None
        self._passes: PassCheck | bool | None = False
        self._fails: FailPath | bool | None = False

    def match(self, resource: JSON, meter: Meter = UNMETERED) -> Outcome:
        """Match a resource (or any element) against the pattern.

        SKIP: a condition does not hold, the pattern does not apply. FAIL: violated at `path`. ERROR: violated at no
        known path, or while a condition or existence key of the pattern was in no map that was looked at. Raises
        ExpressionError when the pattern is nested too deeply to follow, and what `meter` raises, which is charged for
        the elements of long lists.

        >>> compile_pattern({"spec": {"=(hostPID)": False}}).match({"spec": {"hostPID": True}})
        Outcome(status=<Status.FAIL: 'fail'>, path='/spec/hostPID/')
        """
        ledger = Ledger(meter)
        try:
            problem = (self._check or self.compile())(resource, (), ledger)
        except RecursionError:
            raise ExpressionError(_TOO_DEEP) from None
        return _PASS if problem is None else _outcome(problem, ledger)

    def decide(self, resource: JSON, meter: Meter = UNMETERED) -> Outcome:
        """Match as `match` does, by a generated function where it decides; a FAIL then has a path and no message.

        The functions are those of the fast tier: a rule that has both keeps neither a second one nor exact closures.

        >>> compile_pattern({"spec": {"hostPID": False}}).decide({"spec": {"hostPID": True}}).path
        '/spec/hostPID/'
        """
        if self.failing_path is None:
            try:
                if self.passes is not None and self.passes(resource) is True:
                    return _PASS
            except BudgetExceededError:  # what must be charged is for the exact tier
                return self.match(resource, meter)
        else:
            try:
                path = self.failing_path(resource)
            except Exception:  # proves nothing
                return self.match(resource, meter)
            return Outcome(Status.FAIL, path) if path else _PASS
        return self.match(resource, meter)

    def observed(self, resource: JSON, observer: Observer, meter: Meter = UNMETERED) -> Outcome:
        """Match as `match` does, with closures made for this once that `observer` sees at work."""
        ledger = Ledger(meter)
        try:
            check = element_check(self.tree, float_numbers=self.float_numbers, observer=observer)
            problem = check(resource, (), ledger)
        except RecursionError:
            raise ExpressionError(_TOO_DEEP) from None
        return _PASS if problem is None else _outcome(problem, ledger)

    def compile(self) -> Check:
        """Make the exact closures now, and return them; raises RecursionError when the pattern is nested too deeply."""
        # two threads may both do this; the results are equal
        self._check = check = element_check(self.tree, float_numbers=self.float_numbers)
        return check

    @property
    def passes(self) -> PassCheck | None:
        """The generated pass-check, made on first use: True means that `match` gives PASS, all else proves nothing.

        None when there is none for this pattern.

        >>> compile_pattern({"kind": "Pod | Deployment"}).passes({"kind": "Pod"})
        True
        """
        if self._passes is False:
            self._passes = compile_passes(self)  # two threads may both do this; the results are equal
        return self._passes or None  # type: ignore[return-value]  # never True

    @property
    def failing_path(self) -> FailPath | None:
        """The generated function that gives the path of a FAIL, "" for PASS, or raises; made on first use.

        None when this pattern has none; then, and when it raises, `match` decides.

        >>> compile_pattern({"spec": {"hostPID": False}}).failing_path({"spec": {"hostPID": True}})
        '/spec/hostPID/'
        """
        if self._fails is False:
            self._fails = compile_failpath(self.tree, float_numbers=self.float_numbers)
        return self._fails or None  # type: ignore[return-value]  # never True


def compile_pattern(pattern: JSON, *, float_numbers: bool = False) -> Pattern:
    """Compile a pattern, as under `validate.pattern`; with `float_numbers` as under `validate.anyPattern`.

    Raises ExpressionError when the pattern is nested too deeply.

    >>> compile_pattern({"(kind)": "Pod", "spec": "*"}).match({"kind": "Job"}).message
    'conditional anchor mismatch: resource value does not match pattern at path /kind/'
    """
    compiled = Pattern(pattern, float_numbers=float_numbers)
    if not _is_shallow(pattern):
        try:
            compiled.compile()
        except RecursionError:
            raise ExpressionError(_TOO_DEEP) from None
    return compiled


def _is_shallow(pattern: JSON) -> bool:
    """Return whether a pattern cannot be nested too deeply; one that might be is compiled at once to find out."""
    level = [pattern]
    for _ in range(_SHALLOW):
        level = [
            child
            for node in level
            if isinstance(node, (dict, list))
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return True
    return False


def _outcome(problem: Problem, ledger: Ledger) -> Outcome:
    # the order of these questions is that of Kyverno's pkg/engine/validate
    if problem.is_skip:
        return Outcome(Status.SKIP, problem=problem)
    has_missing_keys = problem.cause is not Cause.NEGATION and not all(ledger.values())
    if problem.path is None or has_missing_keys:
        return Outcome(Status.ERROR, problem=problem)
    return Outcome(Status.FAIL, path_text(problem.path), problem)
