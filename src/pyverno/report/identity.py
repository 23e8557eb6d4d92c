"""The identity of a finding while its file is edited: rule, object and field, without line numbers."""

from __future__ import annotations

from pyverno.lazyregex import regex
from pyverno.report.finding import Finding

__all__ = ["identity"]

_INDEX = regex(r"/\d+(?=/|$)")


def identity(finding: Finding) -> tuple[str, ...]:
    """Return rule, object and field of a finding; positions in lists are left out, because edits move them like lines.

    >>> from pyverno.engine.result import ResourceRef
    >>> identity(Finding("p", "r", ResourceRef("v1", "Pod", "n", "a"), "fail", path="/spec/containers/0/image/"))
    ('p/r', 'Pod', 'n', 'a', '/spec/containers/*/image')
    """
    ref = finding.resource
    path = _INDEX.sub("/*", finding.path.rstrip("/"))
    rule = f"{finding.policy}/{finding.rule}" if finding.rule else finding.policy
    return rule, ref.kind, ref.namespace, ref.name, path
