"""`pyverno cel check --policy`: the expressions of whole policies against the schemas of the kinds that they match.

A policy that does not compile is an error and is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyverno.cli.cel.environment import custom_definitions
from pyverno.compiler.cel.typechecking import TypeChecking, check_types, known_schemas
from pyverno.compiler.compile import compile_documents
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.schemas import schema_set
from pyverno.offline.policies import load_policy_documents
from pyverno.policy.cel.admissionpolicy import MutatingAdmissionPolicy, ValidatingAdmissionPolicy
from pyverno.policy.cel.policies import CelPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.validate import Validate
from pyverno.value import dataclass

__all__ = ["CheckedPolicy", "check_policies", "format_policy"]


@dataclass(frozen=True, slots=True)
class CheckedPolicy:
    """One policy, called `kind/name`, and the findings of its check."""

    name: str
    found: TypeChecking


def check_policies(
    sources: Sequence[str], crd_files: Sequence[str], version: tuple[int, int]
) -> tuple[list[CheckedPolicy], list[PyvernoError]]:
    """Check the CEL policies in files and folders; returns them with the errors of invalid policies.

    Raises UsageError when there is no CEL policy at all.
    """
    loaded = load_policy_documents(sources)
    compilation = compile_documents(loaded.documents)
    errors: list[PyvernoError] = [*loaded.errors, *compilation.errors]
    crds, unread = custom_definitions(crd_files)
    errors += unread
    schemas = known_schemas(schema_set(".".join(map(str, version))), crds)
    checked = []
    for item in compilation.items:
        policy = item.written
        if item.errors or (isinstance(policy, ClusterPolicy) and not _has_cel(policy)):
            continue
        if isinstance(policy, (ValidatingAdmissionPolicy, MutatingAdmissionPolicy, CelPolicy, ClusterPolicy)):
            name = f"{policy.kind}/{_key(policy)}"
            checked.append(CheckedPolicy(name, check_types(policy, schemas, version)))
    if not checked and not errors:
        raise UsageError("the files of --policy hold no policy of CEL expressions")
    return checked, errors


def _key(policy: CelPolicy | ClusterPolicy | ValidatingAdmissionPolicy | MutatingAdmissionPolicy) -> str:
    return policy.key if isinstance(policy, (CelPolicy, ClusterPolicy)) else policy.name


def _has_cel(policy: ClusterPolicy) -> bool:
    return any(isinstance(rule.action, Validate) and rule.action.cel is not None for rule in policy.spec.rules)


def format_policy(checked: CheckedPolicy) -> Iterator[str]:
    """Yield the lines of the text output: the checked kinds, and each warning after its field path."""
    found = checked.found
    if not found.kinds:
        yield f"{checked.name}: not checked, it names no kind with a schema\n"
        return
    kinds = ", ".join(f"{gvk.group}/{gvk.version}/{gvk.kind}".lstrip("/") for gvk in found.kinds)
    yield f"{checked.name}: {len(found.warnings) or 'no'} warning{'s' * (len(found.warnings) != 1)} ({kinds})\n"
    for each in found.warnings:
        yield f"{each.location}: {each.field_ref}\n"
        yield from (f"  {line}\n" for line in each.warning.splitlines() if line)
