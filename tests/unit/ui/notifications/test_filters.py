"""Filters of notification targets."""

from __future__ import annotations

import pytest

from tests.support.notifications import settings
from tests.unit.ui.store.samples import result


def admits(keys: str, status: str = "fail", labels: dict[str, str] | None = None, **fields: str) -> bool:
    """Return whether a target with these keys gets a result."""
    (target,) = settings(f"targets: [{{type: slack, webhook: x, {keys}}}]").targets
    return target.filter.admits(result(status=status, **fields), status, "c", labels or {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keys", "fields", "expected"),
    [
        ("", {"status": "pass"}, False),
        ("", {"status": "warn"}, True),
        ("where: 'status=pass'", {"status": "pass"}, True),
        ("filter: {status: {include: [pass]}}", {"status": "pass"}, True),
        ("where: {namespace: [a, team-*]}", {"namespace": "team-b"}, True),
        ("where: 'namespace=!team-*'", {"namespace": "team-b"}, False),
        ("where: 'namespace=team*'", {"namespace": ""}, False),
        ("where: {search: 'NO', policy: p}", {}, True),
        ("where: {property.a: b}", {}, False),
        ("where: {label.team: x*}", {"labels": {"team": "xy"}}, True),
        ("minimumSeverity: high", {"severity": "critical"}, True),
        ("minimumSeverity: high", {"severity": "medium"}, False),
        ("minimumSeverity: info", {"severity": ""}, False),
        ("sources: [kyverno]", {}, True),
        ("sources: [falco]", {}, False),
        ("filter: {namespaces: {include: [x]}}", {"namespace": "y"}, False),
        ("filter: {namespaces: {include: [x]}}", {"namespace": ""}, True),
        ("filter: {policies: {exclude: [p*]}}", {}, False),
        ("filter: {severities: {include: [high]}, kinds: {include: [P?d]}}", {}, True),
        ("filter: {reportLabels: {include: ['app:web-*']}}", {"labels": {"app": "web-1"}}, True),
        ("filter: {reportLabels: {include: [app]}}", {"labels": {"tier": "x"}}, False),
        ("filter: {reportLabels: {exclude: [app]}}", {"labels": {"app": ""}}, False),
    ],
)
def test_a_filter_admits(keys: str, fields: dict[str, str], *, expected: bool) -> None:
    """The grammar of the pages, and Policy Reporter's keys; a result without namespace passes `filter.namespaces`."""
    assert expected == admits(keys, **fields)
