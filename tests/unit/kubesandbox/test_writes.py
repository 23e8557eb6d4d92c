"""Writes as admission sees them."""

from __future__ import annotations

from pyverno.engine.request import Operation
from tests.unit.kubesandbox.serving import ADMIN, api_server, write


def test_options_fit_the_operation() -> None:
    """A patch that creates has CreateOptions, one that changes UpdateOptions."""
    where = write(api_server(), "configmaps", "default", "a", dry_run=True)
    created = where.attributes(Operation.CREATE, {"a": 1}, None)
    updated = where.attributes(Operation.UPDATE, {"a": 2}, {"a": 1})
    assert ("CreateOptions", "UpdateOptions") == tuple(
        attributes.options["kind"] for attributes in (created, updated) if attributes.options
    )
    assert (ADMIN, True, "default", "a", {"a": 2}, {"a": 1}) == (
        updated.user,
        updated.dry_run,
        updated.namespace,
        updated.name,
        updated.object,
        updated.old,
    )


def test_a_namespace_is_in_itself() -> None:
    """Selectors of namespaces then find it."""
    where = write(api_server(), "namespaces", "", "x")
    assert "x" == where.attributes(Operation.DELETE, None, {}).namespace
    assert ("namespaces", "", "x") == where.key
