"""Converted policies as Kubernetes' own kinds: ValidatingAdmissionPolicy and MutatingAdmissionPolicy with bindings.

What the API server itself can evaluate is what compiles there: no function of Kyverno's libraries, no `request.object`,
no targets, no background scans. A policy of one namespace is bound to that namespace. The API server writes no reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyverno.compiler.compile import compile_documents
from pyverno.compiler.migration.outcome import Converted, Note, UnconvertibleError
from pyverno.compiler.migration.policy import PolicyConversion, RuleOutcome
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import Document
from pyverno.policy.subresources import WHOLE_PODS
from pyverno.value import replace

__all__ = ["convert_native", "native_conversion"]

_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "ValidatingPolicy": ("ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1"),
    "MutatingPolicy": ("MutatingAdmissionPolicy", "admissionregistration.k8s.io/v1"),
}
_TARGETS: Final = {"vap": "ValidatingAdmissionPolicy", "map": "MutatingAdmissionPolicy"}
_FIELDS: Final = ("matchConstraints", "matchConditions", "variables", "validations", "mutations", "auditAnnotations")
_REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    "targetMatchConstraints": ("the API server changes no objects but that of the request", "keep the MutatingPolicy"),
    "targetMatchConditions": ("the API server changes no objects but that of the request", "keep the MutatingPolicy"),
}
_MOST_CONDITIONS: Final = 64
_NO_REPORT: Final = Note("no-reports", "", "the API server writes no reports and judges no existing objects")


def convert_native(policy: JSONObject) -> Converted:
    """Return the admission policy and its binding for a policy in CEL; raises UnconvertibleError."""
    kind = str(policy["kind"])
    found = _KINDS.get(kind.removeprefix("Namespaced"))
    if found is None:
        raise UnconvertibleError("native-kind", "kind", f"Kubernetes has no kind like {kind}", "use --to cel")
    spec = policy["spec"]
    _refuse(spec)
    native_kind, api_version = found
    name, namespace = str(policy["metadata"]["name"]), policy["metadata"].get("namespace")
    written: JSONObject = {field: spec[field] for field in _FIELDS if spec.get(field)}
    # the default of the API server, which policies that are generated do not rely on
    written["failurePolicy"] = spec.get("failurePolicy") or "Fail"
    if "mutations" in spec:
        written["reinvocationPolicy"] = spec.get("reinvocationPolicy") or "Never"
    metadata = {field: value for field, value in policy["metadata"].items() if field not in ("name", "namespace")}
    document = {"apiVersion": api_version, "kind": native_kind, "metadata": {"name": name, **metadata}, "spec": written}
    bound: JSONObject = {"policyName": name}
    if "validations" in spec:
        bound["validationActions"] = spec.get("validationActions") or ["Deny"]
    if namespace:
        labels = {"kubernetes.io/metadata.name": namespace}
        bound["matchResources"] = {"namespaceSelector": {"matchLabels": labels}}
    binding = {
        "apiVersion": api_version,
        "kind": f"{native_kind}Binding",
        "metadata": {"name": f"{name}-binding"},
        "spec": bound,
    }
    _refuse_what_does_not_compile(document)
    return Converted((document, binding), (_NO_REPORT,))


def native_conversion(found: PolicyConversion, target: str) -> PolicyConversion:
    """Return a conversion with Kubernetes' own kinds; all rules stay where one of its policies has no such form.

    `target` is `vap` for policies that validate, `map` for those that mutate.
    """
    documents: list[JSONObject] = []
    notes: list[Note] = []
    try:
        for policy in found.documents:
            converted = convert_native(policy)
            if converted.documents[0]["kind"] != _TARGETS[target]:
                reason = f"a {policy['kind']} does not become a {_TARGETS[target]}"
                raise UnconvertibleError("native-kind", "kind", reason, "use --to cel, or the other kind")
            documents += converted.documents
            notes += [each for each in converted.notes if each not in notes]
    except UnconvertibleError as error:
        refused = error.refused
        rules = tuple(each if each.refused is not None else RuleOutcome(each.rule, (), refused) for each in found.rules)
        return PolicyConversion(found.source, (), found.source, rules)
    rules = tuple(replace(each, notes=(*each.notes, *notes)) if each.refused is None else each for each in found.rules)
    return replace(found, documents=tuple(documents), rules=rules)


def _refuse(spec: JSONObject) -> None:
    for field, (reason, advice) in _REFUSED.items():
        if spec.get(field):
            raise UnconvertibleError("native-field", f"spec.{field}", reason, advice)
    if len(spec.get("matchConditions") or ()) > _MOST_CONDITIONS:
        reason = f"the API server takes {_MOST_CONDITIONS} match conditions at most"
        raise UnconvertibleError("native-conditions", "spec.matchConditions", reason, "use --to cel")
    evaluation = spec.get("evaluation") or {}
    if evaluation.get("useServerSideApply") or (evaluation.get("admission") or {}).get("enabled") is False:
        reason = "the API server has no such way to evaluate a policy"
        raise UnconvertibleError("native-evaluation", "spec.evaluation", reason, "use --to cel")
    controllers = ((spec.get("autogen") or {}).get("podControllers") or {}).get("controllers")
    resources = [each for rule in spec["matchConstraints"]["resourceRules"] for each in rule["resources"]]
    if controllers != [] and WHOLE_PODS.issuperset(resources):
        reason = "the policy counts on copies for pod controllers, which the API server does not make"
        raise UnconvertibleError("native-autogen", "spec.autogen", reason, "name the controllers in the policy")


def _refuse_what_does_not_compile(document: JSONObject) -> None:
    errors = compile_documents([Document(document, "-", 0)]).errors
    if errors:
        reason = f"the expression does not compile in the API server: {errors[0].message.partition(chr(10))[0]}"
        raise UnconvertibleError("native-expression", errors[0].path or "spec", reason, "use --to cel")
