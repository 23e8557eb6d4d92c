"""Laws of the two tiers of policies in CEL: pass-checks of whole rules agree with the closures, within their cost."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from pyverno import VALIDATING, Engine, PolicySet, Request, load_policies
from pyverno.compiler import compile_documents
from pyverno.engine.actions.cel.validate import ValidatingCheck
from pyverno.engine.host import NoHost
from pyverno.engine.result import RuleResult
from pyverno.engine.rule import CompiledRule
from pyverno.errors import PyvernoError
from pyverno.kube.json import JSONObject, encode
from pyverno.kube.yaml.documents import load_documents
from pyverno.lang.cel import CostMeter, Program
from pyverno.lang.cel.fast.passcheck import Claim, fuse
from tests.bench.inputs import mutated_pods
from tests.property.profile import examples
from tests.property.test_cel import PARTS, document
from tests.property.test_passcheck import SupplyingHost

LIBRARY = Path(__file__).resolve().parents[2] / "policies" / "cel"
FILES = tuple(sorted(LIBRARY.rglob("validatingpolicy.yaml")))
IS_NIGHTLY = examples(1) > 1
PODS = 6_000 if IS_NIGHTLY else 150
POLICIES = 10_000 if IS_NIGHTLY else 150
OBJECTS = 20 if IS_NIGHTLY else 2
"""Of each policy, for the law of costs."""
_SEED = 20_261_122

SOURCES = (
    "object.spec.containers",
    "object.spec.containers.filter(c, {c})",
    "object.spec.?containers.orValue([])",
    "object.spec.containers + [object.spec]",
    "object.spec.?securityContext",
    "object.spec.?securityContext.?privileged.orValue(false)",
    "{o}",
    "['a', 'b']",
    "{v}",
    "{v}.filter(c, {c})",
    "{v}.map(c, c.name)",
    "({o} ? [] : {v})",
)
USES = (
    "{v}.size() == 0",
    "size({v}) == 0",
    "!({v}.size() > 1)",
    "{v}.all(c, {c})",
    "!{v}.exists(c, {c})",
    "{v}.?privileged.orValue(false) == false",
    "{v}.hasValue()",
    "{v}",
    "!{v}",
    "({o} || {v}.all(c, {c}))",
    "({o} ? {v}.size() == 0 : {v}.exists(c, {c}))",
    "object.spec.containers.all(c, c.name in {v})",
    "object.spec.containers.all(c, c.name in {v} || {v}.all(d, d.name != c.name))",
    "object.spec.containers.all(c, c.?securityContext.or({v}).?privileged.orValue(false) == false)",
    "{o}",
    "object.spec.containers.all(c, {c})",
)


# --- the library ----------------------------------------------------------------------------------------------------


_WITHOUT_PROOF = {
    "disallow-root-groups",
    "require-ingress-tls",
    "require-odd-control-plane",
    "restrict-cross-namespace-subjects",
    "restrict-secret-file-modes",
    "restrict-system-priority",
}
"""Policies that always go to the closures."""


@cache
def library() -> PolicySet:
    """Return all ValidatingPolicies of the library."""
    return load_policies(*FILES)


@cache
def manifests() -> list[JSONObject]:
    """Return changed pods; every third one as the template of a controller."""
    return [_wrapped(pod, index) for index, pod in enumerate(mutated_pods(_SEED, PODS))]


def _wrapped(pod: JSONObject, index: int) -> JSONObject:
    metadata = {"name": "a", "namespace": "team"}
    template = {key: pod[key] for key in ("metadata", "spec") if key in pod}
    if index % 6 == 1:
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": template}}
    if index % 6 == 4:
        job = {"spec": {"template": template}}
        return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": {"jobTemplate": job}}
    return pod


def _both_tiers(policies: PolicySet, value: JSONObject) -> list[list[RuleResult]]:
    """Return the results of policies with and without fast tiers, in the order of their names."""
    request = Request.from_manifest(value)
    reviews = (Engine(policies, host).review(request, VALIDATING) for host in (NoHost(), SupplyingHost()))
    return [sorted(review.results, key=_order) for review in reviews]


def _order(result: RuleResult) -> tuple[str, str]:
    return result.rule.policy.name, result.rule.name


def test_both_tiers_judge_pods_and_controllers_alike_by_the_whole_library() -> None:
    """Status, text, detail and action of all rules are the same, whichever tier gave them."""
    for value in manifests():
        fast, exact = _both_tiers(library(), value)
        assert exact == fast


def test_every_rule_of_the_library_has_a_proof_that_keeps_the_law() -> None:
    """Where the pass-check of a rule passes, the closures do; it passes nearly everything that they pass."""
    true = passed = 0
    without: set[str] = set()
    for rule in (rule for policy in library().policies for rule in policy.rules):
        passes = fuse((_claim(rule),))
        if passes is None:
            without.add(rule.info.policy.name)
            continue
        for value in manifests()[: PODS // 3]:
            answer = _exact_cost(rule, value) is not None
            fast = passes(value)
            assert answer or not fast, rule.info
            true += answer
            passed += fast
    assert passed > 0.9 * true
    assert _WITHOUT_PROOF == without, "comparisons of numbers, and functions that the generated tier does not know"


def test_the_bound_of_a_rule_is_never_below_its_cost() -> None:
    """Under a limit below the closures' cost of a rule, its variables included, the pass-check never passes."""
    tried = 0
    for rule in (rule for policy in library().policies for rule in policy.rules):
        for value in manifests()[: PODS // 10]:
            cost = _exact_cost(rule, value)
            if cost is not None:
                tried += 1
                passes = fuse((_claim(rule, cost - 1),))
                assert passes is None or not passes(value), rule.info
    assert tried > 100


def test_rules_that_share_variables_are_each_charged_for_them() -> None:
    """In a fused function a rule whose limit is below its own cost does not pass, whoever computed its variables."""
    rules = [policy.rules[0] for policy in library().policies]
    for value in manifests()[: PODS // 10]:
        costs = {rule.info.policy.name: _exact_cost(rule, value) for rule in rules}
        passing = [rule for rule in rules if costs[rule.info.policy.name] is not None]
        for last in passing[:: 4 if IS_NIGHTLY else 12]:
            cost = costs[last.info.policy.name] or 0
            others = [_claim(rule) for rule in passing if rule is not last]
            passes = fuse((*others, _claim(last, cost - 1)))
            assert passes is None or not passes(value), last.info


# --- random policies ------------------------------------------------------------------------------------------------


def _policy(random: Random) -> JSONObject:
    """Return a policy whose variables read each other, some of them wrong for some objects."""
    names: list[str] = []
    variables = []
    for index in range(random.randrange(1, 5)):
        variables.append({"name": f"v{index}", "expression": _filled(random.choice(SOURCES), random, names)})
        names.append(f"v{index}")
    validations = [{"expression": _filled(random.choice(USES), random, names)} for _ in range(random.randrange(1, 4))]
    conditions = [{"name": "c", "expression": _filled("{o}", random, names)}] if random.random() < 0.3 else []
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "generated"},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": conditions,
            "variables": variables,
            "validations": validations,
        },
    }


def _filled(text: str, random: Random, names: list[str]) -> str:
    while "{" in text:
        text = text.replace("{v}", f"variables.{random.choice(names)}" if names else "object.spec.containers", 1)
        text = text.replace("{o}", f"({random.choice(PARTS).replace('{c}', 'object.spec')})", 1)
        text = text.replace("{c}", f"({random.choice(PARTS).replace('{c}', 'c')})", 1)
    return text


def test_random_policies_with_variables_get_the_same_results_from_both_tiers() -> None:
    """Variables may fail, be optional, be used in branches or loops only, or read each other."""
    compiled = proven = 0
    for seed in range(POLICIES):
        random = Random(seed)  # noqa: S311 - reproducible, not secret
        written = [_policy(random) for _ in range(3)]
        for index, policy in enumerate(written):
            policy["metadata"]["name"] = f"generated-{index}"
        text = "\n---\n".join(map(encode, written))
        policies = compile_documents(load_documents(text)).policies  # those that type-check
        compiled += len(policies)
        proven += sum(_is_proven(policy.rules[0]) for policy in policies)
        for _ in range(4):
            value = {**document(random), "apiVersion": "v1", "kind": "ConfigMap"}
            fast, exact = _both_tiers(PolicySet(policies), value)
            assert exact == fast, text
    assert compiled > POLICIES
    assert proven > 0.7 * compiled


def test_the_bound_of_random_policies_is_never_below_their_cost() -> None:
    """The variables are used in loops and branches too."""
    tried, seeds = 0, itertools.count()
    while tried < examples(250):  # how many policies that takes depends on how many do not type-check
        random = Random(next(seeds))  # noqa: S311 - reproducible, not secret
        for policy in compile_documents(load_documents(encode(_policy(random)))).policies:
            for _ in range(OBJECTS):
                value = document(random)
                tried += 1
                cost = _exact_cost(policy.rules[0], value)
                if cost:
                    passes = fuse((_claim(policy.rules[0], cost - 1),))
                    assert passes is None or not passes(value), policy.rules[0].action


def _is_proven(rule: CompiledRule) -> bool:
    return rule.fast_tier is not None and rule.fast_tier().pass_check is not None


# --- what the closures spend ----------------------------------------------------------------------------------------


class _Variables(dict[str, Any]):
    """Variables that are computed on first use, all on one meter."""

    def __init__(self, action: ValidatingCheck, bindings: dict[str, Any], meter: CostMeter) -> None:
        super().__init__()
        self._programs = {each.name: each.program for each in action.variables}
        self._bindings, self._meter = bindings, meter

    def __contains__(self, name: object) -> bool:
        return name in self._programs

    def __missing__(self, name: str) -> Any:
        value = self[name] = self._programs[name].evaluate(self._bindings, meter=self._meter)
        return value


def _exact_cost(rule: CompiledRule, value: JSONObject) -> int | None:
    """Return the closures' cost of a rule that passes, its match conditions included; None when it does not pass."""
    action = rule.action
    assert isinstance(action, ValidatingCheck)
    meter, bindings = CostMeter(), dict[str, Any](object=value)
    bindings["variables"] = _Variables(action, bindings, meter)
    try:
        if any(program.evaluate(bindings, meter=meter) is not True for program in _programs(action)):
            return None
    except PyvernoError:
        return None
    return meter.spent


def _claim(rule: CompiledRule, limit: int = 1_000_000) -> Claim:
    """Return the claim of a rule under a limit."""
    action = rule.action
    assert isinstance(action, ValidatingCheck)
    variables = tuple((each.name, each.program.checked) for each in action.variables)
    return Claim(tuple(program.checked for program in _programs(action)), variables, limit)


def _programs(action: ValidatingCheck) -> list[Program]:
    return [*(each.program for each in action.conditions), *(each.program for each in action.validations)]
