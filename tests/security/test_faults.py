"""I5, I11, F4: a bug in one rule is an ERROR of this rule; every other rule answers as if nothing had happened."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pytest

from pyverno.compiler.compile import Compilation, Compiled
from pyverno.engine.decision import Decision
from pyverno.engine.engine import Engine, Review
from pyverno.engine.faults import error_verdict
from pyverno.engine.host import Host, NoHost
from pyverno.engine.inplace import in_place
from pyverno.engine.phases import MUTATING_EXISTING
from pyverno.engine.policyset import PolicySet
from pyverno.engine.request import Request
from pyverno.engine.result import FailureAction, Status
from pyverno.engine.rule import CompiledPolicy
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore
from pyverno.value import replace
from tests.cases.case import Case, all_cases
from tests.cases.snapshot import PHASES
from tests.security.asking import CONFIG_MAP, Spy, ask, compiled, found, policy
from tests.security.faultsites import Sites
from tests.support.objects import forget_caches

BYSTANDER = """
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: NAME}
spec:
  background: false
  rules:
  - name: deny
    match: {any: [{resources: {kinds: ['*']}}]}
    validate: {failureAction: Enforce, message: nothing gets by, deny: {}}
---
"""
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "team"}}
BYSTANDERS = BYSTANDER.replace("NAME", "aaa-bystander") + BYSTANDER.replace("NAME", "zzz-bystander")


class OddError(Exception):
    """An exception of a type that the code does not know."""


ERRORS: tuple[type[Exception], ...] = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    ZeroDivisionError,
    RecursionError,
    MemoryError,
    OddError,
    StopIteration,
    AssertionError,
)

EXEMPT = """---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: exempt, namespace: team}
spec:
  exceptions: [{policyName: guard, ruleNames: [check]}]
  match: {any: [{resources: {kinds: [ConfigMap]}}]}
"""
LIBRARIES = (
    'http.Get("https://x.example.com").a == ""',
    'resource.Post("v1", "configmaps", "team", object).kind == ""',
    'resource.List("v1", "secrets", "team", {"a": "b"}).items.size() == 0',
    'resource.ToGVR("v1", "Secret") == null',
    'globalContext.Get("entry", "").a == ""',
    'image.GetMetadata("nginx").a == ""',
    'x509.decode("").Subject == null',
)

UNEQUAL = "      - {key: '{{ request.object.FIELD }}', operator: Equals, value: other}\n"

# sites that golden cases do not reach
EXTRA = {
    "targets": """
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: targets}
spec:
  evaluation: {mutateExisting: {enabled: true}}
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  targetMatchConstraints:
    namespaceSelector: {matchLabels: {a: b}}
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'}
""",
    "annotations": """
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: annotations}
spec:
  validationActions: [Deny]
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  variables: [{name: kind, expression: object.kind}]
  validations: [{expression: 'variables.kind == "x"', messageExpression: '"no " + string(object.kind)'}]
  auditAnnotations: [{key: kind, valueExpression: string(object.kind)}]
""",
    "image": found("imageRegistry:\n  reference: nginx"),
    "conditions": policy(
        "context:\n- name: found\n  configMap: {name: \"{{ random('[a-z]') }}\", namespace: team}\n"
        "validate:\n  failureAction: Enforce\n  message: 'no {{ found.data.a }}'\n"
        "  deny:\n    conditions:\n      any:\n"
        "      - key: '{{ request.object.list }}'\n        operator: AnyNotIn\n"
        "        value: '{{ request.object.other }}'\n"
    ),
    "unknown operator": policy(
        "validate:\n  deny:\n    conditions:\n      any:\n"
        "      - key: a\n        operator: Equals\n        value: '{{ @ }}'\n"
    ),
    "generate": policy("generate:\n  apiVersion: v1\n  kind: Secret\n  name: a\n  namespace: b\n  data:\n    data: {}")
    + EXEMPT,
    "mutate existing": policy(
        "mutate:\n  targets:\n  - apiVersion: v1\n    kind: Secret\n    name: s\n    namespace: team\n"
        "  patchStrategicMerge:\n    data:\n      a: b"
    )
    + EXEMPT,
    **{
        f"library {number}": f"""
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {{name: library}}
spec:
  validationActions: [Deny]
  matchConstraints:
    resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}]
  validations: [{{expression: '{expression}'}}]
"""
        for number, expression in enumerate(LIBRARIES)
    },
    "authorizer": """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: authorizer}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations: [{expression: 'authorizer.group("").resource("pods").check("get").allowed()'}]
""",
    "pass-checks of two forms": "---\n".join(
        policy(f"validate:\n  failureAction: Enforce\n  message: named\n{rule}").replace("guard", name)
        for name, rule in {
            "alternatives": "  anyPattern:\n  - metadata:\n      name: '?*'\n",
            "kinds": f"  deny:\n    conditions:\n      any:\n{UNEQUAL.replace('FIELD', 'kind')}",
            "versions": f"  deny:\n    conditions:\n      any:\n{UNEQUAL.replace('FIELD', 'apiVersion')}",
        }.items()
    ),
    **{
        f"patch that fails, {name}": f"""
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {{name: patch}}
spec:
  matchConstraints:
    resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}]
  mutations:
  - patchType: JSONPatch
    jsonPatch: {{expression: '[JSONPatch{{op: "replace", path: {path}, value: dyn({{"a": 1.5}})}}]'}}
"""
        for name, path in {
            "number": '"/no/field"',
            "long text": '"/" + object.list.map(each, "abcdefghijklmnopqrstuvwxyz").join("")',
        }.items()
    },
    "anyPattern": policy(
        "validate:\n  failureAction: Enforce\n  anyPattern:\n  - data:\n      a: '{{ request.object.kind }}'\n"
    ),
}


IN_PLACE = {
    name: f"""
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {{name: in-place}}
spec:
  evaluation: {{mutateExisting: {{enabled: true}}}}
  matchConstraints:
    resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}]
  {targets}
  matchConditions: [{{name: kind, expression: 'object.kind == "ConfigMap"'}}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {{expression: 'Object{{metadata: Object.metadata{{labels: {{"a": "b"}}}}}}'}}
---
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {{name: let, namespace: team}}
spec:
  policyRefs: [{{name: {exempt}, kind: MutatingPolicy}}]
  images: [nginx]
"""
    for name, targets, exempt in (
        (
            "targets in place",
            "targetMatchConstraints: {resourceRules: "
            "[{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}",
            "another",
        ),
        ("objects in place", "", "in-place"),
    )
}


@dataclass(frozen=True)
class Replay:
    """One question with the policies that answer it."""

    name: str
    compile: Callable[[], Compilation]
    request: Request
    host: Host

    def opened(self, sites: Sites) -> Callable[[], tuple[Review, Decision]]:
        """Compile the policies and the bystanders; return a function that reviews with them, without a cached plan."""
        compilation, bystanders = self.compile(), compiled(BYSTANDERS)
        assert 2 == len(bystanders.policies)
        policies = (*compilation.policies, *bystanders.policies)
        for each in (*policies, *compilation.exceptions):
            sites.wrap_fields(each)

        def ask() -> tuple[Review, Decision]:
            review = Engine(PolicySet(policies, compilation.exceptions), self.host).review(self.request, PHASES)
            return review, review.decision

        return ask


def compiled_case(case: Case) -> Compilation:
    """Compile the policies of a golden case anew."""
    return Case(case.folder).compilation


# a case that takes a second for each fault; a small object reaches the same sites
SMALLER = {
    "admissionpolicy/messages-that-cost-too-much-deny-what-passed": Request.from_manifest(
        {**CONFIG_MAP, "data": {"a": "1", "b": "2"}}
    )
}


def replays() -> Iterator[Replay]:
    """Yield the questions of all golden cases, and of the policies above."""
    for case in all_cases():
        if case.compilation.policies:
            requests = [SMALLER[case.name]] if case.name in SMALLER else list(case.requests())[:3]
            for request in requests:
                yield Replay(case.name, partial(compiled_case, case), request, case.host)
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"a": "b"}}}
    host = OfflineHost(objects=ObjectStore([SECRET, home]), images={"nginx": {"manifest": {}, "configData": {}}})
    for name, text in EXTRA.items():
        compilation = compiled(text)
        assert () == compilation.errors, [str(error) for error in compilation.errors]
        yield Replay(
            name, partial(compiled, text), Request.from_manifest({**CONFIG_MAP, "list": ["a*", "b"] * 200}), host
        )
    for name, text in IN_PLACE.items():
        yield Replay(name, partial(compiled_in_place, text), Request.from_manifest(CONFIG_MAP), host)


def compiled_in_place(text: str) -> Compilation:
    """Compile policies in the form that judges existing objects by themselves."""
    compilation = compiled(text)

    def changed(item: Compiled) -> Compiled:
        if item.policy is None:
            return item
        rules = tuple(rule for each in item.policy.rules if (rule := in_place(each)) is not None)
        return replace(item, policy=CompiledPolicy(item.policy.info, rules))

    return Compilation(tuple(map(changed, compilation.items)))


Said = Mapping[tuple[str, str, str], Sequence[tuple[Status, str, FailureAction]]]


def said(review: Review) -> Said:
    """Return the message of every rule."""
    told: dict[tuple[str, str, str], list[tuple[Status, str, FailureAction]]] = defaultdict(list)
    for result in review.results:
        info = result.rule
        told[(info.policy.kind, info.policy.key, info.name)].append((result.status, result.message, result.action))
    return told


_STRICT = (Status.FAIL, Status.ERROR)
# where a bug leaves a verdict as it is: what only words, proves or reports it
_HARMLESS = (
    "field CompiledRule.report_properties",
    "field Overload.cost",
    "pyverno.engine.actions.message.passed_message",
    "pyverno.engine.decision.",
    # before a pass-check it only keeps that from proving anything; the rules then ask again
    "pyverno.engine.engine._Course.check_deadline",
    "pyverno.engine.fast.plan._both",
    "pyverno.engine.fast.plan._fuse",
    "pyverno.lang.cel.fast.passcheck.fuse",
    "pyverno.lang.pattern.fast.passcheck.fuse",
    "pyverno.lang.pattern.operators.compile_operator",
    "pyverno.lang.pattern.operators_equality.is_mere_text",
    "pyverno.lang.template.syntax.parse_string",
    "pyverno.lang.jmespath.fast.expressions.write_expression",
    "pyverno.engine.result.ResourceRef.of",
    "pyverno.offline.host.OfflineHost.supplies_variables",
)


def problem_of(site: str, expected: Said, review: Review, *, was_denied: bool, decision: Decision) -> str:
    """Return how one bug got out of its rule, "" when it did not."""
    if was_denied and decision.allowed:
        return "a deny became an allow"
    got = said(review)
    changed = [rule for rule in expected.keys() | got.keys() if expected.get(rule) != got.get(rule)]
    if len(changed) > 1:
        return f"it changed {len(changed)} rules"
    if not changed:
        return "" if review.faults or site.startswith(_HARMLESS) else "nobody noticed"
    before, after = expected.get(changed[0], ()), got.get(changed[0], ())
    if any(status is Status.ERROR for status, *_ in after):
        return ""
    strict = [sum(status in _STRICT for status, *_ in each) for each in (before, after)]
    return "" if strict[1] >= strict[0] and after else "its rule says something milder"


@pytest.fixture(scope="module")
def outcome() -> tuple[Sites, Counter[str], dict[str, str]]:
    """Throw every exception at the first call of every site, and one of them at each call of it."""
    rounds = 4 if os.environ.get("PYVERNO_NIGHTLY") else 1
    sites, uses, problems = Sites(), Counter[str](), {}
    thrown = 0
    forget_caches()
    with sites.installed():
        for replay in replays():
            ask = replay.opened(sites)
            sites.calls, sites.is_counting = {}, True
            ask()
            first, sites.calls = sites.calls, {}
            review, decision = ask()
            sites.is_counting = False
            assert () == review.faults, replay.name
            expected, was_denied = said(review), not decision.allowed
            for site in first | sites.calls:
                uses[site] += 1
                if uses[site] > rounds:
                    continue
                for error, always in (*((each, False) for each in ERRORS), (OddError, True)):
                    if always and site == "pyverno.engine.result.RuleResult.of":
                        continue  # without it nobody can say anything
                    # what is made on first use is only made by policies that were never asked
                    opened = ask if site in sites.calls else replay.opened(sites)
                    sites.arm(site, error, always=always)
                    try:
                        review, decision = opened()
                    except Exception as escaped:
                        problems[site] = f"{error.__name__} in {replay.name}: {escaped!r} escaped"
                        continue
                    finally:
                        count, _ = sites.thrown, sites.disarm()
                        thrown += count
                    if not count:
                        problem = ""
                    elif always:
                        problem = "a deny became an allow" if was_denied and decision.allowed else ""
                    else:
                        problem = problem_of(site, expected, review, was_denied=was_denied, decision=decision)
                    # what the process remembers is made once
                    if problem or (not count and site in sites.calls):
                        problems[site] = f"{error.__name__} in {replay.name}: {problem or 'it was not called'}"
    assert thrown >= 3000
    return sites, uses, problems


_NOT_ASKED = "the protocol has it for exceptions of the other kind"
_SANDBOX = "asked by the sandbox's admission policies only"
_LIKE_OTHERS = "no case; its neighbours in the same `try` are sites"
_PLANNED = "asked while a plan is made, whose candidates are sites"
_AFTERWARDS = "asked after the answer by `Triggers`, which lets a fault end the work of its rule only"
_TABLE = "reached through a table that was made on import"
_VERIFIES = "needs a registry that answers: see tests/unit/engine/actions/test_verify_images.py"
_VERIFIES_CEL = "needs a registry that answers: see tests/unit/engine/actions/cel/test_images.py"
_MANIFESTS = "needs a manifest signed by a key of the test: see tests/unit/engine/actions/test_verify_manifests.py"
_RECORDS = (
    "needs a key of an installation and an object in a cluster: see tests/security/strangers/test_tampered_store.py"
)
UNREACHED: Mapping[str, str] = {
    **{
        f"pyverno.engine.{name}": _AFTERWARDS
        for name in (
            "actions.cel.mutate.MutatingAction.triggered",
            "actions.cel.mutate.conditions_met",
            "actions.cel.targets.MutatingTargets.triggered",
            "actions.unavailable.Unavailable.triggered",
            "cel.constraints.ConstraintMatcher.names_operation",
            "match.Matcher.names_operation",
        )
    },
    **{
        f"pyverno.engine.actions.cel.admission.{name}": _SANDBOX
        for name in ("AdmissionValidation._all_of", "_make_verdict")
    },
    **{
        f"pyverno.engine.{name}": "asked before a review, for which the rule is lowered"
        for name in (
            "inplace.in_place",
            "cel.constraints.ConstraintMatcher.for_any_operation",
            "cel.constraints._for_any",
        )
    },
    "pyverno.kube.imageref.globs.full_texts": _VERIFIES_CEL,
    "pyverno.lang.pattern.operators.is_negated": "asked before a review, when conditions are compiled",
    **{
        f"pyverno.engine.actions.cel.images.{name}": _VERIFIES_CEL
        for name in (
            "ImageSelection._listed",
            "ImageSelection._selects",
            "ImageSelection._matches",
            "ImageSelection.applies",
            "ImageSelection.found",
            "ImageSelection.open",
            "ImageSelection.pinnable",
            "ImageValidatingCheck.exempt",
            "ImageValidatingCheck.properties",
            "ImageValidatingCheck.run",
            "PinDigests.exempt",
            "PinDigests.run",
            "RequiredImages.exempt",
            "RequiredImages.run",
            "_message",
            "_object",
            "_texts",
        )
    },
    **{
        f"pyverno.engine.actions.verify_images.{name}": _VERIFIES
        for name in (
            "_BlockAtWork._check_conditions",
            "_BlockAtWork._check_attestation",
            "_BlockAtWork._predicates",
            "_BlockAtWork._redact",
            "_BlockAtWork._unmet",
            "_first_problem",
            "_unattested",
        )
    },
    **{
        f"pyverno.engine.actions.verify_manifests.{name}": _MANIFESTS
        for name in (
            "VerifyManifests._difference",
            "VerifyManifests._judge",
            "VerifyManifests._sets",
            "VerifyManifests.run",
            "_failed",
            "_log",
            "_passed",
            "_without_logs",
            "read_manifest_attestors",
        )
    },
    **{
        f"pyverno.engine.cel.images.{name}": _VERIFIES_CEL
        for name in (
            "ImageHost._attestation",
            "ImageHost._build",
            "ImageHost._first_pass",
            "ImageHost._name",
            "ImageHost._notary",
            "ImageHost._check_signatures",
            "ImageHost._check_statements",
            "ImageHost._count_signed",
            "ImageHost._verify",
            "ImageHost._work",
            "ImageHost._works",
            "ImageHost.at_work",
            "ImageHost.image_metadata",
            "ImageHost.image_payload",
            "ImageHost.verify_image",
            "failed_checks",
            "verified_images",
        )
    },
    **{
        f"pyverno.engine.imageverification.{name}": _VERIFIES
        for name in (
            "demands.read_demands",
            "notary._attempts",
            "notary._notary_attestor",
            "notary.check_notary",
            "notary.try_notary",
            "passes.PassCache.add",
            "passes.PassCache.has",
            "pinning._child",
            "pinning._with",
            "pinning.pinned",
            "pinning.text_at",
            "verifier.ImageAtWork._access",
            "verifier.ImageAtWork._check_notary",
            "verifier.ImageAtWork._check_set",
            "verifier.ImageAtWork._known_digest",
            "verifier.ImageAtWork._once",
            "verifier.ImageAtWork._place",
            "verifier.ImageAtWork._read",
            "verifier.ImageAtWork._revocation",
            "verifier.ImageAtWork._fetch_stored",
            "verifier.ImageAtWork.artifact_json",
            "verifier.ImageAtWork.check_artifacts",
            "verifier.ImageAtWork.check_signatures",
            "verifier.ImageAtWork.check_statements",
            "verifier.ImageAtWork.now",
            "verifier.ImageAtWork.repository",
            "verifier._attestors_in",
            "verifier._decode_artifact",
            "verifier._read_all",
        )
    },
    **{
        f"pyverno.images.manifests.{name}": _MANIFESTS
        for name in (
            "compare.difference",
            "compare.same_object",
            "signed.read_signed_manifest",
        )
    },
    **{
        f"pyverno.images.verification.{name}": _VERIFIES
        for name in (
            "notary.envelope.read_notary",
            "notary.verify.verify_notary",
            "payloads.predicate_type_of",
            "revocation.no_revocations",
            "signature.read_stored",
            "counting.count_signers",
            "counting.signers_of",
            "verify.verify",
            "verify.verify_set",
            "attestorsets.read_attestor_sets",
            "attestorfields.read_items",
        )
    },
    "pyverno.images.info.parse_image_at": _VERIFIES_CEL,
    "pyverno.engine.broker.Broker.described_image": _VERIFIES_CEL,
    "pyverno.engine.broker.Broker.artifact_content": _VERIFIES,
    "pyverno.engine.broker.Broker.image_artifacts": _VERIFIES,
    "pyverno.engine.broker.Broker.revocation": _VERIFIES,
    "pyverno.engine.imagesource.NoImages.artifact_content": _VERIFIES,
    "pyverno.engine.imagesource.NoImages.artifacts": _VERIFIES,
    "pyverno.engine.imagesource.NoImages.revocation": _VERIFIES,
    **{
        f"pyverno.engine.imageverification.{name}": _RECORDS
        for name in (
            "annotations.RecordedObject.names",
            "annotations.RecordedObject.was_created_about",
            "annotations._content",
            "annotations._message",
            "annotations._parsed",
            "annotations._part",
            "annotations.carries_records",
            "annotations.read_record",
            "annotations.sealed",
            "annotations.without_foreign",
            "recordkeys.RecordKeys.current",
            "recordkeys.RecordKeys.holds",
            "recordkeys.RecordKeys.seal",
            "recordkeys._code",
            "recordkeys.key_id",
        )
    },
    "pyverno.kube.time.gotime.parse_rfc3339": _RECORDS,
    "pyverno.engine.actions.verify_images._note": _RECORDS,
    "pyverno.kube.json.decode": _VERIFIES,
    "pyverno.kube.jsonscan.has_more_values": _VERIFIES,
    "pyverno.engine.broker.Broker.image_signatures": _VERIFIES,
    "pyverno.engine.imagesource.NoImages.data": _VERIFIES_CEL,
    "pyverno.engine.imagesource.NoImages.signatures": _VERIFIES,
    **{f"pyverno.engine.origin.Origin.{name}": "read by controllers" for name in ("is_copy", "of")},
    "pyverno.kube.gvk.join_api_version": "for subresources that are kinds of their own",
    "pyverno.engine.actions.cel.authorize._envoy": _TABLE,
    "pyverno.engine.actions.cel.authorize._http": _TABLE,
    **{
        f"pyverno.engine.rules.exceptions.CompiledException.{name}": _NOT_ASKED
        for name in ("allowances", "is_full", "priority", "reports_pass")
    },
    "pyverno.engine.cel.exceptions.CompiledCelException.pod_security": _NOT_ASKED,
    "pyverno.engine.actions.cel.admission.AdmissionValidation._erred": _SANDBOX,
    "pyverno.engine.actions.cel.annotations.annotation_properties": "held by the field `report_properties`",
    "pyverno.engine.actions.cel.authorize.AuthorizingCheck.exempt": _LIKE_OTHERS,
    "pyverno.engine.actions.cel.targets.MutatingTargets.exempt": _LIKE_OTHERS,
    "pyverno.engine.actions.pattern.AnyPatternCheck._message_or_empty": _LIKE_OTHERS,
    **{f"pyverno.engine.cel.brokerhost.BrokerHost.{name}": _LIKE_OTHERS for name in ("_has_entry", "image_payload")},
    "pyverno.engine.cel.brokerhost.BrokerHost.verify_image": "always an error in this version",
    **{f"pyverno.engine.rules.guards.{name}.materialise": _PLANNED for name in ("_NothingElse", "_OperationOnly")},
    "pyverno.engine.scope.Scope.materialise": "expressions that read `@` as a whole are refused",
    "pyverno.engine.variables.merged": "values files only",
    "pyverno.kube.json.encode": "messages that are no text only",
    "pyverno.lang.template.patchtext.PatchText.positions": "asked before a review, for errors of the policy",
    **{f"pyverno.offline.host.OfflineHost.{name}": _LIKE_OTHERS for name in ("lookup_host", "random_bits")},
    "pyverno.offline.host.OfflineHost.require_read": "policies in files have no authors",
}


def test_a_bug_never_leaves_its_rule(outcome: tuple[Sites, Counter[str], dict[str, str]]) -> None:
    """F4: one rule is an ERROR, the others answer as before, and no deny becomes an allow."""
    _, _, problems = outcome
    assert {} == problems


def test_the_text_of_a_bug_names_no_value() -> None:
    """I4: users see kind and code, operators see names and lines; the exception's own text appears nowhere."""
    try:
        raise KeyError("canary-5c1e")
    except KeyError as error:
        verdict = error_verdict(error)
    assert (Status.ERROR, "internal error: a part of a value is missing (fault-missing)") == verdict[:2]
    assert "canary" not in repr(verdict)
    assert "test_the_text_of_a_bug_names_no_value" in repr(verdict.detail)


class Unwell(NoHost):
    """A Host with a bug in every method."""

    def __getattribute__(self, name: str) -> object:
        if name in {"config_map", "get_object", "list_objects"}:
            raise ZeroDivisionError("canary-5c1e")
        return super().__getattribute__(name)


def test_a_bug_in_one_target_leaves_the_others() -> None:
    """Of existing objects, the one that cannot be judged is an error, and the others are changed."""
    targets = [{**CONFIG_MAP, "metadata": {"name": name, "namespace": "team"}} for name in ("one", "two", "three")]
    text = policy(
        "mutate:\n  targets:\n  - apiVersion: v1\n    kind: ConfigMap\n    namespace: team\n"
        "    preconditions:\n      all:\n      - key: '{{ target.metadata.name }}'\n        operator: NotEquals\n"
        "        value: x\n"
        "  patchStrategicMerge:\n    data:\n      b: '{{ target.metadata.name }}'",
        on="Secret",
    )
    host = OfflineHost(objects=ObjectStore(targets))
    compilation = compiled(text)
    assert () == compilation.errors
    sites = Sites()
    with sites.installed():
        sites.arm("pyverno.engine.actions.patches.StrategicMergePatch.apply", AttributeError)
        review = Engine(compilation.policy_set(), host).review(Request.from_manifest(SECRET), MUTATING_EXISTING)
    assert Counter({Status.ERROR: 1, Status.PASS: 2}) == Counter(result.status for result in review.results)
    assert ["fault-missing"] == [fault.code for _, fault in review.faults]


def test_a_bug_of_a_host_is_an_error_of_the_calling_rule() -> None:
    """F4: an exception that a Host raises becomes an error of the calling rule alone, and its text appears nowhere."""
    text = found("configMap:\n  name: a\n  namespace: team").replace("{{ found }}", "{{ found.data.a }}")
    review = ask(text + "---\n" + BYSTANDERS.removesuffix("---\n"), host=Unwell())
    assert [Status.ERROR, Status.FAIL, Status.FAIL] == sorted(result.status for result in review.results)
    assert "canary" not in repr(review)
    twin = ask(text, host=Spy({"data": {"a": "1"}}))
    assert [Status.FAIL] == [result.status for result in twin.results]


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_the_failure_policy_judges_a_bug(failure_policy: str) -> None:
    """A bug is an error like others: it denies where errors do, and nowhere else."""
    text = found("configMap:\n  name: a\n  namespace: team").replace("{{ found }}", "{{ found.data.a }}")
    text = text.replace("  rules:", f"  failurePolicy: {failure_policy}\n  rules:", 1)
    assert (failure_policy == "Ignore") == ask(text, host=Unwell()).decision.allowed


def test_every_site_was_hit(outcome: tuple[Sites, Counter[str], dict[str, str]]) -> None:
    """F4: a site that no case reaches would be untested; a new function of the engine needs a case or a reason."""
    sites, uses, _ = outcome
    assert [] == sorted(sites.known - uses.keys() - UNREACHED.keys())
    assert [] == sorted(UNREACHED.keys() - sites.known)
    assert len(uses) >= 330
