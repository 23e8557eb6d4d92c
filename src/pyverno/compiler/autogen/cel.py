"""Autogen of CEL policies: copies of policies about Pods for the controllers that make Pods.

A copy is the policy with other constraints and with expressions that look into the pod template. Validating kinds are
rewritten as text, mutating ones expression by expression. This module must not compile an expression.
(Kyverno: pkg/cel/autogen)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from pyverno.errors import PolicyError
from pyverno.kube.gvk import join_api_version
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import locate
from pyverno.lazyregex import regex
from pyverno.policy.cel.blocks import Autogen
from pyverno.policy.cel.constraints import MatchConstraints, ResourceRule
from pyverno.policy.cel.copies import AutogenConfig, Target
from pyverno.policy.cel.imagepolicy import IMAGE_VALIDATING_SPEC, ImageValidatingPolicy
from pyverno.policy.cel.policies import MUTATING_SPEC, CelPolicy, MutatingPolicy, ValidatingPolicy, ValidatingSpec
from pyverno.policy.schema import Cursor, Problems, Record
from pyverno.policy.subresources import WHOLE_PODS
from pyverno.policy.validate import AuditAnnotation, CelExpression, NamedExpression
from pyverno.value import replace

__all__ = [
    "POD_CONTROLLERS",
    "constraints_for",
    "copies_of",
    "expand_cel",
    "guarded_conditions",
    "is_about_pods",
    "rewrite_mutation",
    "rewrite_text",
]

P = TypeVar("P", ValidatingPolicy, MutatingPolicy, ImageValidatingPolicy)
T = TypeVar("T", NamedExpression, CelExpression, AuditAnnotation)

DEFAULTS = "defaults"
CRON_JOBS = "cronjobs"
_TEMPLATES = {DEFAULTS: ("template",), CRON_JOBS: ("jobTemplate", "spec", "template")}


POD_CONTROLLERS: dict[str, Target] = {
    "daemonsets": Target("apps", "v1", "daemonsets", "DaemonSet"),
    "deployments": Target("apps", "v1", "deployments", "Deployment"),
    "jobs": Target("batch", "v1", "jobs", "Job"),
    "replicasets": Target("apps", "v1", "replicasets", "ReplicaSet"),
    "statefulsets": Target("apps", "v1", "statefulsets", "StatefulSet"),
    "cronjobs": Target("batch", "v1", "cronjobs", "CronJob"),
}
"""The controllers that copies are made for, by the names that policies select them with."""


def expand_cel(policy: P) -> tuple[AutogenConfig[P], ...]:
    """Return the copies of a policy, `defaults` first; none when autogen does not apply or is switched off.

    The policy itself is not among them. Values of a copy keep the paths of their origin. A compiled policy knows its
    copies already. Raises `PolicyError` when a copy does not decode, which text replacement cannot cause in a policy
    that does.
    """
    if policy.copies is not None:
        return cast("tuple[AutogenConfig[P], ...]", policy.copies)
    spec = policy.spec
    if spec.match_constraints is None or not is_about_pods(spec.match_constraints):
        return ()
    constraints = {
        name: (found, constraints_for(found, spec.match_constraints)) for name, found in _targets(spec.autogen).items()
    }
    return tuple(
        AutogenConfig(name, found, _copy(policy, name, selected))
        for name, (found, selected) in constraints.items()
        if selected is not None
    )


def copies_of(policy: CelPolicy) -> tuple[AutogenConfig[CelPolicy], ...]:
    """Return the copies of a policy of any kind; kinds without autogen have none."""
    match policy:
        case ValidatingPolicy():
            return expand_cel(policy)
        case MutatingPolicy():
            return expand_cel(policy)
        case ImageValidatingPolicy():
            return expand_cel(policy)
    return ()


def is_about_pods(constraints: MatchConstraints) -> bool:
    """Return whether constraints select Pods and ask for nothing that holds for Pods and not for controllers.

    Beside `pods`, a rule may list the subresources whose requests carry a whole Pod. (Kyverno makes no copies then.)
    """
    selector = constraints.object_selector or {}
    if selector.get("matchLabels") or selector.get("matchExpressions") or constraints.exclude_resource_rules:
        return False
    match constraints.resource_rules:
        case (ResourceRule(api_groups=("",), api_versions=("v1",), resources=resources, resource_names=()),):
            are_whole = WHOLE_PODS.issuperset(resources)  # guard: twin: copies are made beside subresources
            return "pods" in resources and are_whole
    return False


def _targets(autogen: Autogen) -> dict[str, tuple[Target, ...]]:
    written = autogen.pod_controllers
    # unknown names are ignored, as upstream does
    chosen = [target for name, target in POD_CONTROLLERS.items() if written is None or name in written]
    cron = POD_CONTROLLERS[CRON_JOBS]
    return {
        DEFAULTS: tuple(sorted(target for target in chosen if target != cron)),
        CRON_JOBS: tuple(target for target in chosen if target == cron),
    }


def constraints_for(targets: Iterable[Target], origin: MatchConstraints) -> JSONObject | None:
    """Return the JSON of the constraints of a copy: one rule per group and version; None when they match nothing.

    Only operations (of the first rule) and namespaceSelector are taken over.
    """
    operations = origin.resource_rules[0].operations
    resources: dict[tuple[str, str], set[str]] = {}
    for target in targets:
        resources.setdefault((target.group, target.version), set()).add(target.resource)
    if not resources or not operations:
        return None
    constraints: JSONObject = {
        "resourceRules": [
            {
                "apiGroups": [group],
                "apiVersions": [version],
                "operations": list(operations),
                "resources": sorted(names),
            }
            for (group, version), names in sorted(resources.items())
        ]
    }
    if origin.namespace_selector is not None:
        constraints["namespaceSelector"] = origin.namespace_selector
    return constraints


def guarded_conditions(
    conditions: Iterable[NamedExpression], targets: Iterable[Target], *, config: str = ""
) -> tuple[NamedExpression, ...]:
    """Return match conditions for the one webhook that several copies share: each holds for other objects anyway.

    >>> guarded_conditions([NamedExpression("a", "b")], [POD_CONTROLLERS["jobs"]])[0].expression
    "!((object.apiVersion == 'batch/v1' && object.kind =='Job')) || (b)"
    """
    guards = sorted({_guard(target) for target in targets})
    if not guards:
        return ()
    prefix = f"autogen-{config}" if config else "autogen"
    return tuple(
        NamedExpression(f"{prefix}-{each.name}", f"!({' || '.join(guards)}) || ({each.expression})", each.path)
        for each in conditions
    )


def _guard(target: Target) -> str:
    api_version = join_api_version(target.group, target.version)
    return f"(object.apiVersion == '{api_version}' && object.kind =='{target.kind}')"


def _copy(policy: P, config: str, constraints: JSONObject) -> P:
    if isinstance(policy, MutatingPolicy):
        mutating = _mutating(policy.spec.raw, config)
        return replace(policy, spec=_decode(MUTATING_SPEC, {**mutating, "matchConstraints": constraints}, policy))
    # texts come twice, as they are written and in the decoded spec
    known: dict[str, str] = {}

    def rewrite(text: str) -> str:
        found = known.get(text)
        if found is None:
            found = known[text] = rewrite_text(text, config)
        return found

    raw: JSONObject = _rewrite({**policy.spec.raw, "matchConstraints": constraints}, rewrite)
    if isinstance(policy, ValidatingPolicy):
        return replace(policy, spec=_move(policy.spec, raw, rewrite))
    return replace(policy, spec=_decode(IMAGE_VALIDATING_SPEC, raw, policy))


def _move(spec: ValidatingSpec, raw: JSONObject, rewrite: Callable[[str], str]) -> ValidatingSpec:
    """Return what `raw` decodes to: as only texts are rewritten, the decoded spec with these texts rewritten."""

    def texts(value: T, *names: str) -> T:
        found: dict[str, Any] = {name: rewrite(text) for name in names if _OBJECT in (text := getattr(value, name))}
        return replace(value, **found) if found else value

    controllers = spec.autogen.pod_controllers
    return ValidatingSpec(
        match_constraints=_selecting(raw["matchConstraints"]),
        match_conditions=tuple([texts(each, "name", "expression") for each in spec.match_conditions]),
        variables=tuple([texts(each, "name", "expression") for each in spec.variables]),
        failure_policy=spec.failure_policy,
        timeout_seconds=spec.timeout_seconds,
        evaluation=spec.evaluation,
        raw=raw,
        validations=tuple(
            [texts(each, "expression", "message", "message_expression", "reason") for each in spec.validations]
        ),
        validation_actions=spec.validation_actions,
        audit_annotations=tuple([texts(each, "key", "value_expression") for each in spec.audit_annotations]),
        autogen=spec.autogen
        if controllers is None
        else replace(spec.autogen, pod_controllers=tuple([rewrite(name) for name in controllers])),
    )


def _selecting(raw: JSONObject) -> MatchConstraints:
    """Return what the JSON that `constraints_for` makes decodes to."""
    path = ("spec", "matchConstraints")
    rules = [
        ResourceRule(
            api_groups=tuple(rule["apiGroups"]),
            api_versions=tuple(rule["apiVersions"]),
            operations=tuple(rule["operations"]),
            resources=tuple(rule["resources"]),
            path=(*path, "resourceRules", index),
        )
        for index, rule in enumerate(raw["resourceRules"])
    ]
    return MatchConstraints(tuple(rules), namespace_selector=raw.get("namespaceSelector"), path=path, raw=raw)


def _decode(shape: Record, raw: JSON, policy: ValidatingPolicy | MutatingPolicy | ImageValidatingPolicy) -> JSON:
    problems = Problems(policy.document)
    spec: JSON = shape(raw, Cursor(problems, ("spec",)))
    if spec is None:
        causes = "; ".join(error.message for error in problems.errors)
        raise PolicyError(
            f"the copy for pod controllers is not a valid policy: {causes}",
            location=locate(policy.document, ("spec",)),
            path="spec",
            code="autogen",
        )
    return spec


# Fixed patterns; what is before `object` does not matter, so other names that end like it are hit too.
_METADATA = regex(r"(object|oldObject)\.metadata(?!\.namespace(?![A-Za-z0-9_]))", re.ASCII)
_SPEC = regex(r"(object|oldObject)\.spec(?!\.namespace(?![A-Za-z0-9_]))", re.ASCII)


_OBJECT = "bject."  # what every match of them has


def rewrite_text(text: str, config: str) -> str:
    """Move `object.spec` and `object.metadata` (and those of oldObject) into the pod template, anywhere in a text.

    `object.metadata.namespace` stays.

    >>> rewrite_text("object.spec.x == object.metadata.namespace", "defaults")
    'object.spec.template.spec.x == object.metadata.namespace'
    """
    # COMPAT: plain text replacement, so messages and look-alikes such as `myobject.specX` change as well
    template = ".".join(("spec", *_TEMPLATES[config]))
    spec, metadata = f".{template}.spec", f".{template}.metadata"
    # functions rather than templates, which Python would parse for each text
    text = _SPEC.sub(lambda found: found[1] + spec, text)
    return _METADATA.sub(lambda found: found[1] + metadata, text)


def _rewrite(value: JSON, rewrite: Callable[[str], str]) -> JSON:
    """Rewrite all strings and keys, which is the same as rewriting the JSON text; does not recurse."""
    holder: list[JSON] = []
    pending: list[tuple[JSON, JSON]] = [([value], holder)]
    while pending:
        source, target = pending.pop()
        fresh: list[JSON] = []
        for item in source.values() if isinstance(source, dict) else source:
            if isinstance(item, str):
                fresh.append(rewrite(item) if _OBJECT in item else item)
            elif isinstance(item, (dict, list)):
                fresh.append({} if isinstance(item, dict) else [])
                pending.append((item, fresh[-1]))
            else:
                fresh.append(item)
        if isinstance(target, list):
            target.extend(fresh)
        else:
            target.update(zip([rewrite(key) if _OBJECT in key else key for key in source], fresh, strict=True))
    return holder[0]


def _mutating(raw: JSONObject, config: str) -> JSONObject:
    """Rewrite match conditions and ApplyConfiguration expressions; variables and JSON patches stay as they are."""
    copy = dict(raw)
    if raw.get("matchConditions"):
        copy["matchConditions"] = [_with_expression(condition, config) for condition in raw["matchConditions"]]
    if raw.get("mutations"):
        copy["mutations"] = [
            {**mutation, "applyConfiguration": _with_expression(mutation["applyConfiguration"], config)}
            if mutation.get("applyConfiguration")
            else mutation
            for mutation in raw["mutations"]
        ]
    return copy


def _with_expression(holder: JSONObject, config: str) -> JSONObject:
    expression = holder.get("expression")
    return {**holder, "expression": rewrite_mutation(expression, config)} if expression else holder


_MUTATED = (
    (regex(r"\b(object|oldObject|Object)\.spec", re.ASCII), "spec"),
    (regex(r"\b(object|oldObject|Object)\.metadata\.labels", re.ASCII), "metadata.labels"),
    (regex(r"\b(object|oldObject|Object)\.metadata\.annotations", re.ASCII), "metadata.annotations"),
)
_BLANKS = " \t\r\n"


def rewrite_mutation(expression: str, config: str) -> str:
    """Move an expression of a MutatingPolicy into the pod template, and wrap the object that it starts with.

    >>> rewrite_mutation("Object{spec: Object.spec{hostNetwork: false}}", "defaults").partition("{spec: ")[2]
    'Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{hostNetwork: false}}}}'
    """
    path = ("spec", *_TEMPLATES[config])
    for pattern, field in _MUTATED:
        expression = pattern.sub(rf"\1.{'.'.join(path)}.{field}", expression)
    trimmed = expression.strip()
    content = trimmed.removeprefix("Object").lstrip(_BLANKS)
    if not trimmed.startswith("Object") or not content.startswith("{"):
        return expression
    inner, rest = _split_braced(content[1:])
    if not inner:
        return expression
    opened = "".join(f"{step}: Object.{'.'.join(path[: depth + 1])}{{" for depth, step in enumerate(path))
    return f"Object{{{opened}{inner}{'}' * (len(path) + 1)}{rest}"


def _split_braced(content: str) -> tuple[str, str]:
    """Split what follows an opening brace at the brace that closes it; both parts are empty without one."""
    # COMPAT: braces count as characters, also within strings
    depth = 1
    for found in re.finditer(r"[{}]", content):
        depth += 1 if found.group() == "{" else -1
        if depth == 0:
            return content[: found.start()], content[found.end() :]
    return "", ""
