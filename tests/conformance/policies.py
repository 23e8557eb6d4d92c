"""Policies of table rows: Go's unit tests read them without a schema, so fields that no kind has are dropped first.

Everything else goes through the compiler and the engine of the product.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from pyverno.compiler import Compiled, compile_documents
from pyverno.compiler.compile import compile_document
from pyverno.engine.engine import Engine, Review
from pyverno.engine.host import Host
from pyverno.engine.phases import ADMISSION
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.rule import CompiledPolicy
from pyverno.kube.json import encode
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.kube.yaml.fieldpath import path_text
from pyverno.offline.host import OfflineHost
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.decode import decode
from tests.conformance.outcome import NotRun

__all__ = ["as_document", "compiled_policy", "judge", "known_fields", "refusal", "written_policy"]

_ACTIONS = frozenset({"validate", "mutate", "generate", "verifyImages"})
_MAX_ROUNDS = 20


def as_document(value: Any) -> Document:
    """Return the document that holds a value, or that a text writes."""
    if isinstance(value, str):
        return load_documents(value, file="row")[0]
    return load_documents(encode(value), file="row")[0]


def known_fields(value: Any) -> Any:
    """Return a policy without the fields that its kind does not have; rules that this leaves without an action deny."""
    value = copy.deepcopy(value)
    for _ in range(_MAX_ROUNDS):
        errors = decode(as_document(value)).errors
        places = {path_text(path): path for path in _paths(value, ())}
        unknown = [places[error.path] for error in errors if error.code == "unknown-field" and error.path in places]
        if not unknown:
            break
        for path in sorted(unknown, key=len, reverse=True):
            _drop(value, path)
    for rule in (value.get("spec") or {}).get("rules") or []:
        if not any(rule.get(action) for action in _ACTIONS):
            for action in _ACTIONS:
                rule.pop(action, None)
            rule["validate"] = {"deny": {}}
    return value


def _paths(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from _paths(child, (*path, key))


def _drop(value: Any, path: tuple[str | int, ...]) -> None:
    for step in path[:-1]:
        value = value[step]
    value.pop(path[-1], None)


def written_policy(value: Any) -> ClusterPolicy:
    """Decode a ClusterPolicy or Policy; raises AssertionError with what is wrong."""
    decoded = decode(as_document(known_fields(value)))
    assert isinstance(decoded.policy, ClusterPolicy), "; ".join(map(str, decoded.errors))
    return decoded.policy


def compiled_policy(value: Any) -> CompiledPolicy:
    """Compile a policy as a store would load it: what validation alone refuses still runs."""
    compiled = compile_document(as_document(known_fields(value)))
    reason = refusal([compiled])
    if reason:
        raise NotRun(reason)
    assert compiled.policy is not None, "; ".join(map(str, compiled.errors))
    return compiled.policy


def refusal(items: Sequence[Compiled]) -> str:
    """Return why the product does not offer what these documents need yet, in its own words; "" when it does."""
    for item in items:
        unsupported = [error.message for error in item.errors if error.code == "unsupported-kind"]
        if unsupported:
            return unsupported[0]
    return ""


def judge(policy: Any, request: Request, host: Host | None = None, exceptions: Any = ()) -> Review:
    """Ask one policy about a request, mutation and validation together."""
    extra = compile_documents([as_document(each) for each in exceptions]).exceptions
    engine = Engine(PolicySet((compiled_policy(policy),), extra), host if host is not None else OfflineHost())
    return engine.review(request, ADMISSION)
