"""I6, CVE-2024-48921: in a cluster an exception counts only where an administrator lets exceptions live."""

from __future__ import annotations

import pytest

from pyverno.controllers.state.policystore import PolicyStore
from pyverno.engine.engine import Engine
from pyverno.engine.phases import ADMISSION
from pyverno.engine.request import Request
from pyverno.kube.yaml.documents import load_documents
from pyverno.webhook.policyreviews import ExceptionSettings
from tests.security.asking import POD
from tests.security.test_exceptions import DENIED, EXACT


def _is_allowed(settings: ExceptionSettings | None) -> bool:
    """Judge a pod by a policy and the exception that the tenant of namespace `team` made for it."""
    store = PolicyStore(settings)
    for text in (DENIED, EXACT):
        for document in load_documents(text.encode()):
            store.put(document.value)
    return Engine(store.policies.all).review(Request.from_manifest(POD), ADMISSION).decision.allowed


@pytest.mark.parametrize(
    "settings",
    [
        None,
        ExceptionSettings(),
        ExceptionSettings(enabled=True),
        ExceptionSettings(enabled=True, namespace="exceptions"),
        ExceptionSettings(enabled=False, namespace="team"),
    ],
    ids=["default", "off", "nowhere", "elsewhere", "off-but-named"],
)
def test_an_exception_of_a_tenant_has_no_effect(settings: ExceptionSettings | None) -> None:
    """Exceptions are off by default, and on they count in one namespace.

    Register: CVE-2024-48921.
    """
    assert not _is_allowed(settings)


@pytest.mark.parametrize("namespace", ["team", "*"])
def test_an_exception_in_the_namespace_of_exceptions_counts(namespace: str) -> None:
    """The harmless twin."""
    assert _is_allowed(ExceptionSettings(enabled=True, namespace=namespace))
