"""Runs the checks of the analysis: findings in the order of the codes, each with a witness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyverno.compiler.analysis.finding import Finding
from pyverno.compiler.analysis.registry import CHECKS
from pyverno.compiler.analysis.workspace import Workspace
from pyverno.compiler.lints.run import is_selected

__all__ = ["analyze"]


def analyze(workspace: Workspace, *, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> Iterator[Finding]:
    """Yield what the checks find; `select` and `ignore` are codes or their beginnings.

    An observation without a witness is dropped, because its reader could not check it. Afterwards `workspace.samples`
    has the pairs of rules that each check tried and left out.
    """
    for check in CHECKS:
        if is_selected(check.code, select, ignore):
            workspace.begin(check.code)
            for observation in check.load().check(workspace):
                if observation.witnesses:
                    yield Finding(check.code, check.name, check.severity, observation)
