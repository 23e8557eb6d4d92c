"""Autogen: copies of rules about Pods for the controllers that make Pods.

A copy is the JSON of its origin with other kinds, the pattern or patch wrapped into the pod template, and variable
paths rewritten by plain text replacement. This module must not compile rules, and must not know how they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyverno.errors import PolicyError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import locate, path_text
from pyverno.lazyregex import go_regex
from pyverno.policy.clusterpolicy import ClusterPolicy, decode_rule
from pyverno.policy.generate import Generate
from pyverno.policy.match import ResourceFilter
from pyverno.policy.mutate import Mutate
from pyverno.policy.rule import Rule

__all__ = ["ANNOTATION", "POD_CONTROLLERS", "autogen_controllers", "expand", "is_autogen_name"]

ANNOTATION = "pod-policies.kyverno.io/autogen-controllers"

POD_CONTROLLERS: dict[str, str] = {
    "DaemonSet": "apps/v1/DaemonSet",
    "Deployment": "apps/v1/Deployment",
    "Job": "batch/v1/Job",
    "StatefulSet": "apps/v1/StatefulSet",
    "ReplicaSet": "apps/v1/ReplicaSet",
    "ReplicationController": "v1/ReplicationController",
    "CronJob": "batch/v1/CronJob",
}
"""The kinds that make Pods, and the selectors that copies match them with."""

MAX_RULE_NAME = 63
_PREFIX = "autogen-"
_CRON_JOB = "CronJob"
_POD_KINDS = frozenset((*POD_CONTROLLERS, "Pod"))
_KIND_SELECTORS = {**POD_CONTROLLERS, "Pod": "v1/Pod"}

_VALIDATE_KEPT = ("failureAction", "failureActionOverrides", "allowExistingViolations")
_RULE_KEPT = (
    "context",
    "preconditions",
    "celPreconditions",
    "verifyImages",
    "reportProperties",
    "skipBackgroundRequests",
)

_REFERENCE = go_regex(r"^\$\(.[^ ]*\)|[^\\]\$\(.[^ ]*\)")


def is_autogen_name(name: str) -> bool:
    """Return whether a rule name is one that autogen gives.

    >>> is_autogen_name("autogen-cronjob-check")
    True
    """
    return name.startswith(_PREFIX)


def autogen_controllers(policy: ClusterPolicy) -> tuple[str, ...]:
    """Return the controllers that copies are made for; empty when autogen does not apply or is switched off.

    The annotation gives a comma list, which is taken as it is (upstream neither trims nor checks it); without it all
    controllers get copies. It has no effect on policies that autogen does not apply to.
    """
    if not _is_applicable(policy):
        return ()
    written = policy.annotations.get(ANNOTATION)
    if written is None:
        return tuple(POD_CONTROLLERS)
    controllers = tuple(dict.fromkeys(written.split(",")))
    return () if controllers in (("none",), ("",)) else controllers


def expand(policy: ClusterPolicy) -> tuple[Rule, ...]:
    """Return the rules of a policy and their copies, in upstream's order: first all written rules, then all copies.

    Copies keep the path of their origin. Written rules whose names look like copies give way when there are copies. A
    compiled policy knows its rules already.
    """
    if policy.expanded is not None:
        return policy.expanded
    controllers = autogen_controllers(policy)
    if not controllers:
        return policy.spec.rules
    copies = tuple(copy for rule in policy.spec.rules for copy in _copies(policy, rule, controllers))
    if not copies:
        return policy.spec.rules
    written = tuple(rule for rule in policy.spec.rules if not is_autogen_name(rule.name))
    return (*written, *copies)


def _is_applicable(policy: ClusterPolicy) -> bool:
    concerns_pods = False
    for rule in policy.spec.rules:
        match rule.action:
            case Generate():
                return False
            case Mutate() as mutate if mutate.patches_json6902 or any(each.patches_json6902 for each in mutate.foreach):
                return False
        for block in _blocks(rule):
            if _names_single_pods(block):
                return False
            concerns_pods = concerns_pods or not _POD_KINDS.isdisjoint(block.resources.kinds)
    return concerns_pods


def _blocks(rule: Rule) -> Iterator[ResourceFilter]:
    yield from rule.match.blocks
    if rule.exclude is not None:
        yield from rule.exclude.blocks


def _names_single_pods(block: ResourceFilter) -> bool:
    """Return whether a block requires something that holds for Pods and not for the controllers."""
    resources = block.resources
    written = block.raw.get("resources") or {}
    return bool(
        resources.name
        or resources.names
        or resources.selector is not None
        or written.get("annotations") is not None
        or (len(resources.kinds) > 1 and _contains_pod(resources.kinds))
    )


def _contains_pod(selectors: tuple[str, ...]) -> bool:
    return any(_plain_kind(selector) == "Pod" for selector in selectors)


def _plain_kind(selector: str) -> str:
    """Return the kind of a selector without group, version and subresource (Kyverno: pkg/utils/kube/kind.go)."""
    last = selector.split("/")
    if len(last) == 4 or (len(last) == 3 and _is_version(last[0])):
        kind = last[-2]
    elif len(last) == 2 and not _is_version(last[0]):
        kind = last[0]
    else:
        kind = last[-1]
    return kind.split(".", 1)[0]


def _is_version(part: str) -> bool:
    return part == "*" or (part[:1] == "v" and part[1:2].isdigit())


def _copies(policy: ClusterPolicy, rule: Rule, controllers: tuple[str, ...]) -> Iterator[Rule]:
    plain = _for_controllers(rule, tuple(each for each in controllers if each != _CRON_JOB))
    if plain is not None:
        yield _convert(policy, rule, plain, "spec.template")
    # COMPAT: upstream looks for the two words anywhere in the joined list.
    joined = ",".join(controllers)
    if _CRON_JOB in joined or "all" in joined:
        base = _for_controllers(rule, controllers)
        cron = None if base is None else _for_cron_job(rule, base)
        if cron is not None:
            yield _convert(policy, rule, cron, "spec.jobTemplate.spec.template")


def _for_controllers(rule: Rule, controllers: tuple[str, ...]) -> JSONObject | None:
    if is_autogen_name(rule.name) or not controllers:
        return None
    excluded = tuple(rule.exclude.kinds()) if rule.exclude is not None else ()
    if not _contains_pod(tuple(rule.match.kinds())) or (excluded and not _contains_pod(excluded)):
        return None
    if controllers == ("all",):
        controllers = tuple(POD_CONTROLLERS)
    known = tuple(each for each in controllers if each in POD_CONTROLLERS and each != _CRON_JOB)
    kinds = [_KIND_SELECTORS.get(each, each) for each in sorted(known or controllers)]
    return _wrap(
        rule.raw,
        name=_cut(f"autogen-{rule.name}"),
        key="template",
        shift="spec/template",
        with_kinds=lambda blocks: [
            _with_kinds(block, kinds) if _block_contains_pod(block) else block for block in blocks
        ],
        kinds=kinds,
    )


def _for_cron_job(rule: Rule, base: JSONObject) -> JSONObject | None:
    kinds = [POD_CONTROLLERS[_CRON_JOB]]
    return _wrap(
        base,
        name=_cut(f"autogen-cronjob-{rule.name}"),
        key="jobTemplate",
        shift="spec/jobTemplate/spec/template",
        with_kinds=lambda blocks: [_with_kinds(block, kinds) for block in blocks],
        kinds=kinds,
    )


def _cut(name: str) -> str:
    # Kyverno cuts bytes; a name that is cut within a character could not be admitted.
    return name.encode()[:MAX_RULE_NAME].decode(errors="ignore")


def _block_contains_pod(block: JSONObject) -> bool:
    return _contains_pod(tuple((block.get("resources") or {}).get("kinds") or ()))


def _with_kinds(block: JSONObject, kinds: list[str]) -> JSONObject:
    return {**block, "resources": {**(block.get("resources") or {}), "kinds": kinds}}


_Blocks = Callable[[list[JSONObject]], list[JSONObject]]


def _wrap(
    raw: JSONObject, *, name: str, key: str, shift: str, with_kinds: _Blocks, kinds: list[str]
) -> JSONObject | None:
    """Return the JSON of one copy, before the text replacement; None for rules that get no copy."""
    action = _wrapped_action(raw, key, shift)
    if action is None:
        return None
    copy: JSONObject = {"name": name, "match": _matched(raw.get("match") or {}, with_kinds, kinds, is_match=True)}
    if raw.get("exclude"):
        copy["exclude"] = _matched(raw["exclude"], with_kinds, kinds, is_match=False)
    copy.update({field: raw[field] for field in _RULE_KEPT if raw.get(field)})
    if raw.get("skipBackgroundRequests") is False:
        copy["skipBackgroundRequests"] = False
    copy.update(action)
    return copy


def _matched(section: JSONObject, with_kinds: _Blocks, kinds: list[str], *, is_match: bool) -> JSONObject:
    for form in ("any", "all"):
        if section.get(form):
            return {**section, form: with_kinds(section[form])}
    if is_match or (section.get("resources") or {}).get("kinds"):
        return _with_kinds(section, kinds)
    return section


def _wrapped_action(raw: JSONObject, key: str, shift: str) -> JSONObject | None:
    if raw.get("mutate"):
        mutate = _wrapped_mutate(raw["mutate"], key)
        if mutate is not None:
            return {"mutate": mutate}
    if raw.get("validate"):
        validate = _wrapped_validate(raw["validate"], key, shift)
        if validate is not None:
            return {"validate": validate}
    return {} if raw.get("verifyImages") else None


def _template(value: JSON, key: str) -> JSONObject:
    return {"spec": {key: value}}


def _wrapped_mutate(mutate: JSONObject, key: str) -> JSONObject | None:
    if mutate.get("patchStrategicMerge") is not None:
        return {"patchStrategicMerge": _template(mutate["patchStrategicMerge"], key)}
    if not mutate.get("foreach"):
        return None
    # COMPAT: order and nested foreach are lost, and an entry without its own patch gets a null template.
    entries = [
        {
            **{field: entry[field] for field in ("list", "context", "preconditions") if entry.get(field)},
            "patchStrategicMerge": _template(entry.get("patchStrategicMerge"), key),
        }
        for entry in mutate["foreach"]
    ]
    return {"foreach": entries}


def _wrapped_validate(validate: JSONObject, key: str, shift: str) -> JSONObject | None:
    kept = {field: validate[field] for field in _VALIDATE_KEPT if validate.get(field) is not None}
    for form, pivot, wrap in _VALIDATE_FORMS:
        body = validate.get(form)
        if body is None or (form == "foreach" and not body):
            continue
        message = validate.get("message")
        if message:
            kept["message"] = _shift(message, shift, pivot)
        return {**kept, form: wrap(body, key)}
    return validate if validate.get("cel") else None


def _wrap_each(patterns: JSON, key: str) -> JSON:
    return [_template(each, key) for each in patterns] if isinstance(patterns, list) else []


def _unwrap(body: JSON, key: str) -> JSON:
    return body


_VALIDATE_FORMS: tuple[tuple[str, str, Callable[[JSON, str], JSON]], ...] = (
    ("pattern", "pattern", _template),
    ("deny", "deny", _unwrap),
    ("podSecurity", "podSecurity", _unwrap),
    ("anyPattern", "anyPattern", _wrap_each),
    ("foreach", "pattern", _unwrap),
)
"""Form, pivot of `$( )` references in the message, and how the form is wrapped; the first one written counts."""


def _shift(message: str, shift: str, pivot: str) -> str:
    """Move `$(…)` references to a pattern into the pod template (Kyverno: FindAndShiftReferences)."""
    if "$(" not in message:
        return message
    for found in _REFERENCE.finditer(message):
        reference = found.group()
        at = pivot
        if pivot == "anyPattern":
            _, has_pivot, rest = reference.partition(f"{pivot}/")
            at = f"{pivot}/{rest.split('/')[0]}" if has_pivot else pivot
        message = message.replace(reference, reference.replace(at, f"{at}/{shift}"), 1)
    return message


def _convert(policy: ClusterPolicy, origin: Rule, copy: JSONObject, template: str) -> Rule:
    prefixes = ("", "old") if (copy.get("validate") or {}).get("cel") else ("request.", "request.old")
    replacements: list[tuple[str, str]] = []
    for field in ("spec", "metadata"):
        for prefix in prefixes:
            name = f"{prefix}object" if not prefix.endswith("old") else f"{prefix}Object"
            replacements.append((f"{name}.{field}", f"{name}.{template}.{field}"))
    raw = _replace(copy, tuple(replacements)) if _holds_any(copy, [old for old, _ in replacements]) else copy
    rule = decode_rule(raw, policy=policy, path=origin.path)
    if rule is None:
        raise PolicyError(
            f"the copy of rule `{origin.name}` for pod controllers is not a valid rule",
            location=locate(policy.document, origin.path),
            path=path_text(origin.path),
            code="autogen",
        )
    return rule


def _holds_any(value: JSON, texts: list[str]) -> bool:
    """Return whether a string or key holds one of these texts; without them a copy can share all values."""
    pending = [value]
    while pending:
        match pending.pop():
            case str() as written:
                if any(text in written for text in texts):
                    return True
            case dict() as members:
                pending.extend(members)
                pending.extend(members.values())
            case list() as items:
                pending.extend(items)
    return False


def _replace(value: JSON, replacements: tuple[tuple[str, str], ...]) -> JSON:
    """Replace text in all strings and keys, which is the same as in the JSON text; does not recurse."""

    def text(written: str) -> str:
        for old, new in replacements:
            written = written.replace(old, new)
        return written

    holder: list[JSON] = [value]
    pending: list[tuple[JSON, str | int]] = [(holder, 0)]
    while pending:
        container, step = pending.pop()
        match container[step]:
            case str() as written:
                container[step] = text(written)
            case dict() as members:
                container[step] = fresh = {text(key): member for key, member in members.items()}
                pending.extend((fresh, key) for key in fresh)
            case list() as items:
                container[step] = copied = list(items)
                pending.extend((copied, index) for index in range(len(copied)))
    return holder[0]
