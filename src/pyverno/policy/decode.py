"""Turns a document into a typed policy, or into the list of everything that is wrong with it.

This module must not check what needs more than the document's own structure (see the compiler's validation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pyverno.errors import PolicyError
from pyverno.kube.yaml.fieldpath import Source
from pyverno.policy.kinds import POLICY_KINDS, find_kind
from pyverno.policy.schema import Cursor, Problems, Shape, text
from pyverno.spelling import did_you_mean
from pyverno.value import dataclass

if TYPE_CHECKING:
    # each kind is imported when a document of it is decoded
    from pyverno.policy.cel.admissionpolicy import (
        MutatingAdmissionPolicy,
        MutatingAdmissionPolicyBinding,
        ValidatingAdmissionPolicy,
        ValidatingAdmissionPolicyBinding,
    )
    from pyverno.policy.cel.exception import CelException
    from pyverno.policy.cel.policies import CelPolicy
    from pyverno.policy.cleanup import CleanupPolicy
    from pyverno.policy.clusterpolicy import ClusterPolicy
    from pyverno.policy.exception import PolicyException
    from pyverno.policy.globalcontext import GlobalContextEntry

    AnyAdmissionPolicy: TypeAlias = (
        ValidatingAdmissionPolicy
        | ValidatingAdmissionPolicyBinding
        | MutatingAdmissionPolicy
        | MutatingAdmissionPolicyBinding
    )
    AnyPolicy: TypeAlias = (
        ClusterPolicy
        | CleanupPolicy
        | PolicyException
        | GlobalContextEntry
        | CelPolicy
        | CelException
        | AnyAdmissionPolicy
    )

__all__ = ["AnyAdmissionPolicy", "AnyPolicy", "Decoded", "decode"]


@dataclass(frozen=True, slots=True)
class Decoded:
    """The result of decoding: a policy and no errors, or no policy and at least one error."""

    policy: AnyPolicy | None
    errors: tuple[PolicyError, ...] = ()
    warnings: tuple[str, ...] = ()


def decode(document: Source) -> Decoded:
    """Decode one document strictly: unknown fields, wrong types, missing fields and unknown values are errors.

    Never raises for a bad document; all problems are collected, each with file:line:column, field path and code.
    """
    problems = Problems(document)
    cursor = Cursor(problems)
    policy: AnyPolicy | None = None
    shape = _shape(cursor)
    if shape is not None:
        try:
            policy = shape(document.value, cursor)
        except RecursionError:
            cursor.error("too-deep", "the policy is nested too deeply")
    errors = tuple(sorted(problems.errors, key=lambda each: (each.location is None, each.location or 0)))
    return Decoded(None if errors else policy, errors, tuple(problems.warnings))


def _shape(cursor: Cursor) -> Shape | None:
    value = cursor.problems.source.value
    if not isinstance(value, dict):
        cursor.wrong_type("an object", value)
        return None
    written: dict[str, str] = {}
    for key in ("apiVersion", "kind"):
        if not value.get(key):
            cursor.error("missing-field", f"required field `{key}` is missing", key=True)
        else:
            written[key] = text(value[key], cursor.child(key))
    if len(written) < 2 or cursor.problems.errors:
        return None
    return _shape_of(written["apiVersion"], written["kind"], cursor)


def _shape_of(api_version: str, kind: str, cursor: Cursor) -> Shape | None:
    group, _, version = api_version.rpartition("/")
    row = find_kind(group, kind)
    if row is None:
        known = tuple(sorted({each.kind for each in POLICY_KINDS if each.group == group}))
        hint = did_you_mean(kind, known) if kind not in known else ""
        cursor.child("kind").error("unknown-kind", f"`{api_version}` kind `{kind}` is not a policy kind{hint}")
        return None
    if version not in row.versions:
        listed = ", ".join(f"`{group}/{each}`" for each in row.versions)
        cursor.child("apiVersion").error(
            "unknown-version", f"kind `{kind}` has no version `{api_version}`, expected one of {listed}"
        )
        return None
    shape = row.decoder(version)
    if shape is None:
        cursor.child("kind").error("unsupported-kind", f"kind `{kind}` ({api_version}) is not supported yet")
    return shape
