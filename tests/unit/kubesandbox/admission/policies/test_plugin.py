"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy in process."""

from __future__ import annotations

import asyncio
import json

import pytest

from kubesandbox.attributes import Notes
from kubesandbox.authorization.rbac import RbacAuthorizer
from kubesandbox.types.resources import ResourceType
from pyverno.engine.request import Operation, User
from pyverno.kube.status import StatusError
from tests.support.admissionstage import (
    TABLE,
    admission,
    admitted,
    answer,
    cluster,
    config_map,
    configuration,
    in_store,
    namespace,
    patching,
    request,
    serving,
    webhook,
)

GROUP = "admissionregistration.k8s.io"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}


def policy(*validations, name="p", **spec):
    body = {"matchConstraints": {"resourceRules": [RULE]}, "validations": list(validations), **spec}
    return {"apiVersion": f"{GROUP}/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": body}


def binding(name="b", policy="p", actions=("Deny",), **spec):
    body = {"policyName": policy, "validationActions": list(actions), **spec}
    kind = "ValidatingAdmissionPolicyBinding"
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "spec": body}


def mutation(*expressions, name="m", **spec):
    listed = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}} for text in expressions]
    body = {"matchConstraints": {"resourceRules": [RULE]}, "mutations": listed, **spec}
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": body,
    }


def mutation_binding(name="mb", policy="m", **spec):
    kind = "MutatingAdmissionPolicyBinding"
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"policyName": policy, **spec},
    }


SCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "h", "namespace": "x"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "maxReplicas": 3,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            }
        ],
    },
}


def scalers(version, **fields):
    """Return constraints about autoscalers of one version."""
    rule = {"apiGroups": ["autoscaling"], "apiVersions": [version], "operations": ["*"]}
    return {"resourceRules": [{**rule, "resources": ["horizontalpodautoscalers"]}], **fields}


def sent(body, *bodies, notes=None, **options):
    _, view = cluster(*bodies)
    return asyncio.run(admitted(admission(view), request(body, **options), notes))


def refusal(body, *bodies, **options) -> StatusError:
    with pytest.raises(StatusError) as refused:
        sent(body, *bodies, **options)
    return refused.value


@pytest.mark.parametrize(
    ("validation", "code", "reason", "message"),
    [
        ({"expression": "false", "message": "no"}, 422, "Invalid", "no"),
        ({"expression": "false", "message": "no", "reason": "Forbidden"}, 403, "Forbidden", "no"),
        (
            {"expression": "object.metadata.name == 'x'"},
            422,
            "Invalid",
            "failed expression: object.metadata.name == 'x'",
        ),
        ({"expression": "false", "messageExpression": "'not ' + object.metadata.name"}, 422, "Invalid", "not c"),
        (
            {"expression": "object.data.x == '1'"},
            422,
            "Invalid",
            "expression 'object.data.x == '1'' resulted in error: no such key: data",
        ),
    ],
)
def test_denials_have_the_words_of_the_api_server(validation, code, reason, message):
    """Policy, binding, text, reason and code are those of a cluster."""
    error = refusal(config_map(), policy(validation), binding())
    text = f"ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {message}"
    assert (code, reason, f'configmaps "c" is forbidden: {text}') == (error.status, error.reason, error.message)
    assert [{"message": text}] == error.to_json()["details"]["causes"]


def test_a_policy_needs_a_binding():
    """A policy without binding has no effect, nor has a binding of a policy that does not exist."""
    body = config_map()
    assert body == sent(body, policy({"expression": "false"}), binding(policy="other"))


def test_bindings_narrow_policies():
    """A binding for other namespaces leaves the request alone."""
    selector = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
    bodies = (policy({"expression": "false", "message": "no"}), binding(matchResources=selector))
    assert config_map() == sent(config_map(), *bodies)
    assert "no" in refusal(config_map(), *bodies, namespace("x", team="a")).message


def test_warn_and_audit_let_requests_pass():
    """The client is warned and the failure is recorded."""
    notes = Notes()
    sent(
        config_map(),
        policy({"expression": "true"}, {"expression": "false", "message": "no"}),
        binding(actions=("Warn", "Audit")),
        notes=notes,
    )
    assert ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no"] == notes.warnings
    (recorded,) = json.loads(notes.annotations["validation.policy.admission.k8s.io/validation_failure"])
    assert ("no", "p", "b", 1, ["Warn", "Audit"]) == tuple(
        recorded[key] for key in ("message", "policy", "binding", "expressionIndex", "validationActions")
    )


def test_every_false_validation_is_reported():
    """A warning for each of them, and a record of the first, or since 1.37 of all, as Go writes it."""
    checks = ({"expression": "false", "message": "<one>"}, {"expression": "1 == 2"})
    bodies = (policy(*checks), binding(actions=("Warn", "Audit")))
    first = '{"message":"\\u003cone\\u003e","policy":"p","binding":"b","expressionIndex":0,'
    second = '{"message":"failed expression: 1 == 2","policy":"p","binding":"b","expressionIndex":1,'
    rest = '"validationActions":["Warn","Audit"]}'
    for version, expected in (("1.35", f"[{first}{rest}]"), ("1.37", f"[{first}{rest},{second}{rest}]")):
        notes = Notes()
        _, view = cluster(*bodies)
        asyncio.run(admitted(admission(view, kube_version=version), request(config_map()), notes))
        where = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': "
        assert [f"{where}<one>", f"{where}failed expression: 1 == 2"] == notes.warnings
        assert {"validation.policy.admission.k8s.io/validation_failure": expected} == notes.annotations


def test_audit_annotations_are_written_for_every_request_that_is_judged():
    """They have the policy's name, denied or not; values that differ by parameter are joined, empty ones left out."""
    annotations = [
        {"key": "name", "valueExpression": "object.metadata.name + '-' + params.data.v"},
        {"key": "same", "valueExpression": "'s'"},
        {"key": "none", "valueExpression": "null"},
    ]
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    both = {"paramRef": {"selector": {"matchLabels": {"p": "1"}}, "parameterNotFoundAction": "Deny"}}
    for text in ("true", "false"):
        bodies = (
            policy({"expression": text}, auditAnnotations=annotations, paramKind=kind),
            binding(actions=("Audit",), **both),
            *(config_map(each, labels={"p": "1"}, data={"v": each}) for each in ("one", "two")),
        )
        notes = Notes()
        sent(config_map(), *bodies, notes=notes)
        found = {key: value for key, value in notes.annotations.items() if key.startswith("p/")}
        assert {"p/name": "c-one, c-two", "p/same": "s"} == found


def test_an_audit_annotation_that_fails_denies_whatever_the_actions():
    """It is the policy that is broken; with Ignore it is left out."""
    broken = [{"key": "k", "valueExpression": "string(object.nope)"}]
    warn = binding(actions=("Warn",))
    error = refusal(config_map(), policy({"expression": "true"}, auditAnnotations=broken), warn)
    assert "denied request: expression 'string(object.nope)' resulted in error: no such key: nope" in error.message
    ignoring = policy({"expression": "true"}, auditAnnotations=broken, failurePolicy="Ignore")
    assert config_map() == sent(config_map(), ignoring, warn)


def test_errors_follow_the_failure_policy():
    """With Ignore an expression that fails denies nothing."""
    assert config_map() == sent(
        config_map(), policy({"expression": "object.data.x == '1'"}, failurePolicy="Ignore"), binding()
    )


def test_parameters_are_read_from_the_store():
    """A named parameter is an object of the cluster; `parameterNotFoundAction` decides where it is missing."""
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    bodies = (
        policy({"expression": "object.metadata.name == params.data.name"}, paramKind=kind),
        binding(paramRef={"name": "settings", "namespace": "x", "parameterNotFoundAction": "Deny"}),
    )
    assert config_map() == sent(config_map(), *bodies, config_map("settings", data={"name": "c"}))
    assert (
        "denied request: failed expression: "
        in refusal(config_map(), *bodies, config_map("settings", data={"name": "d"})).message
    )
    assert "no params found for policy binding with `Deny`" in refusal(config_map(), *bodies).message


def test_a_parameter_kind_that_is_not_served_is_an_error_of_the_policy():
    """It comes before the bindings, follows the failure policy, and rejects whatever the actions are."""
    kind = {"apiVersion": "rules.example.com/v1", "kind": "Limit"}
    reference = {"name": "settings", "parameterNotFoundAction": "Allow"}
    error = (
        "denied request: failed to configure policy: failed to find resource referenced by paramKind: "
        "'rules.example.com/v1, Kind=Limit'"
    )
    audited = binding(actions=("Audit",), paramRef=reference)
    refused = refusal(config_map(), policy({"expression": "true"}, paramKind=kind), audited)
    assert refused.message.endswith(f"ValidatingAdmissionPolicy 'p' {error}")
    ignoring = policy({"expression": "true"}, paramKind=kind, failurePolicy="Ignore")
    assert config_map() == sent(config_map(), ignoring, audited)
    refused = refusal(config_map(), mutation("Object{}", paramKind=kind), mutation_binding(paramRef=reference))
    assert (f'policy "m" {error}', "Forbidden") == (refused.message, refused.reason)


def test_expressions_may_ask_the_authorizer():
    """The answer is that of the server's own authorizer, about the user of the request or a service account."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "r"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }
    bound = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "r"},
        "roleRef": {"kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "name": "jane"}, {"kind": "ServiceAccount", "name": "sa", "namespace": "x"}],
    }
    check = "authorizer.group('').resource('pods').namespace('x').check('get').allowed()"
    account = "authorizer.serviceAccount('x', 'sa').group('').resource('pods').check('get').allowed()"
    _, view = cluster(policy({"expression": f"{check} && {account}"}), binding(), role, bound)
    chain = admission(view, authorizer=RbacAuthorizer(view))
    asyncio.run(admitted(chain, request(config_map())))
    with pytest.raises(StatusError, match="denied request"):
        asyncio.run(admitted(chain, request(config_map(), user=User("joe"))))


def test_a_policy_that_does_not_compile_denies():
    """It is stored, and its failurePolicy decides about requests."""
    broken = policy({"expression": "object.metadata.nmae +"})
    assert 422 == refusal(config_map(), broken, binding()).status
    assert config_map() == sent(config_map(), policy({"expression": "1 +"}, failurePolicy="Ignore"), binding())


def test_mutating_policies_change_the_object():
    """Mutations are applied in order, each to what the one before left."""
    bodies = (
        mutation('Object{data: {"a": "1"}}', 'Object{data: {"b": object.data.a}}'),
        mutation_binding(),
    )
    assert {"a": "1", "b": "1"} == sent(config_map(), *bodies)["data"]


def test_validating_policies_see_what_mutating_ones_left():
    """Mutation comes first."""
    bodies = (
        mutation('Object{data: {"a": "1"}}'),
        mutation_binding(),
        policy({"expression": "object.data.a == '1'"}),
        binding(),
    )
    assert {"a": "1"} == sent(config_map(), *bodies)["data"]


def test_a_mutation_that_fails_refuses_the_request():
    """The status is that of a cluster: code 403, reason Invalid."""
    error = refusal(config_map(), mutation('Object{data: {"a": object.nope}}'), mutation_binding())
    assert (403, "Invalid") == (error.status, error.reason)
    why = "expression 'Object{data: {\"a\": object.nope}}' resulted in error: no such key: nope"
    assert f"policy 'm' with binding 'mb' denied request: {why}" == error.message
    ignoring = mutation('Object{data: {"a": object.nope}}', failurePolicy="Ignore")
    assert config_map() == sent(config_map(), ignoring, mutation_binding())


def test_policies_are_not_about_policies():
    """Policies never judge policies, so that a broken one can always be repaired."""
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    everything = policy({"expression": "false"}, matchConstraints={"resourceRules": [rule]})
    body = policy({"expression": "true"}, name="other")
    assert body == sent(body, everything, binding())


def test_changes_of_policies_count_at_once():
    """A policy that is repaired is compiled anew."""
    store, view = cluster(policy({"expression": "false"}), binding())
    chain = admission(view)
    with pytest.raises(StatusError):
        asyncio.run(admitted(chain, request(config_map())))
    in_store(store, policy({"expression": "true"}))
    assert config_map() == asyncio.run(admitted(chain, request(config_map())))


def test_deletions_are_judged_by_the_old_object():
    """On DELETE `object` is null."""
    rule = {**RULE, "operations": ["DELETE"]}
    bodies = (
        policy(
            {"expression": "object == null && oldObject.metadata.name != 'c'", "message": "kept"},
            matchConstraints={"resourceRules": [rule]},
        ),
        binding(),
    )
    _, view = cluster(*bodies)
    chain = admission(view)
    with pytest.raises(StatusError, match="kept"):
        asyncio.run(chain.validate(request(None, old=config_map(), operation=Operation.DELETE), Notes()))
    asyncio.run(chain.validate(request(None, old=config_map("d"), operation=Operation.DELETE), Notes()))


@pytest.mark.parametrize(
    ("constraints", "narrowed", "is_seen"),
    [
        (scalers("v1"), None, True),
        (scalers("v1", matchPolicy="Equivalent"), None, True),
        (scalers("v1", matchPolicy="Exact"), None, False),
        (scalers("v1"), scalers("v2", matchPolicy="Exact"), True),
        (scalers("v1"), scalers("v1", matchPolicy="Exact"), False),
        (scalers("v1", excludeResourceRules=scalers("v1")["resourceRules"]), None, False),
    ],
)
def test_policies_see_equivalent_objects_in_the_version_that_they_name(constraints, narrowed, is_seen):
    """A binding matches the original request; `requestResource` and `resource` differ."""
    seen = (
        "object.apiVersion == 'autoscaling/v1' && object.spec.targetCPUUtilizationPercentage == 50",
        "oldObject.spec.targetCPUUtilizationPercentage == 50",
        "request.kind.version == 'v1' && request.requestKind.version == 'v2'",
        "request.resource.version == 'v1' && request.requestResource.version == 'v2'",
    )
    matched = {"matchResources": narrowed} if narrowed else {}
    bodies = (policy(*({"expression": text} for text in seen), matchConstraints=constraints), binding(**matched))
    options = {"old": SCALER, "operation": Operation.UPDATE}
    assert SCALER == sent(SCALER, *bodies, **options)
    denying = policy({"expression": "false"}, matchConstraints=constraints)
    if is_seen:
        assert 422 == refusal(SCALER, denying, *bodies[1:], **options).status
    else:
        assert SCALER == sent(SCALER, denying, *bodies[1:], **options)


def test_built_in_objects_can_not_be_mutated_through_another_version():
    """Kubernetes takes what the policy made for the request's own version, and cannot read it."""
    change = "Object{spec: Object.spec{maxReplicas: 9}}"
    error = refusal(SCALER, mutation(change, matchConstraints=scalers("v1")), mutation_binding())
    why = "converting (v1.HorizontalPodAutoscaler) to (v2.HorizontalPodAutoscaler): unknown conversion"
    text = f"policy 'm' with binding 'mb' denied request: {why}"
    assert (403, "Invalid", text) == (error.status, error.reason, error.message)
    exact = mutation(change, matchConstraints=scalers("v1", matchPolicy="Exact"))
    assert SCALER == sent(SCALER, exact, mutation_binding())
    ignoring = mutation(change, matchConstraints=scalers("v1"), failurePolicy="Ignore")
    assert SCALER == sent(SCALER, ignoring, mutation_binding())


WIDGETS = TABLE.with_types(
    ResourceType("x.io", version, "widgets", "Widget", "widget", namespaced=True, crd="widgets.x.io", storage="v1")
    for version in ("v1", "v2")
)


def widgets(version, name, value, **spec):
    """Return a policy that adds to widgets of one version."""
    rule = {"apiGroups": ["x.io"], "apiVersions": [version], "operations": ["*"], "resources": ["widgets"]}
    patch = f'[JSONPatch{{op: "add", path: "/spec/{value}", value: object.apiVersion}}]'
    listed = [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]
    return mutation(name=name, matchConstraints={"resourceRules": [rule]}, **{"mutations": listed, **spec})


def test_mutations_of_custom_objects_are_converted_back():
    """The policy changes the version that it names, the request stays in its own."""
    body = {"apiVersion": "x.io/v2", "kind": "Widget", "metadata": {"name": "w", "namespace": "x"}, "spec": {}}
    _, view = cluster(widgets("v1", "m", "a"), mutation_binding(), table=WIDGETS)
    found = asyncio.run(admitted(admission(view), request(body, table=WIDGETS)))
    assert ("x.io/v2", {"a": "x.io/v1"}) == (found["apiVersion"], found["spec"])


def test_what_policies_change_in_different_versions_does_not_add_up():
    """Kubernetes converts back what the last policy saw."""
    body = {"apiVersion": "x.io/v2", "kind": "Widget", "metadata": {"name": "w", "namespace": "x"}, "spec": {}}
    bodies = (widgets("v2", "m1", "a"), widgets("v1", "m2", "b"), mutation_binding("b1", "m1"))
    _, view = cluster(*bodies, mutation_binding("b2", "m2"), table=WIDGETS)
    found = asyncio.run(admitted(admission(view), request(body, table=WIDGETS)))
    assert {"b": "x.io/v1"} == found["spec"]


def test_every_mutation_that_fails_is_reported():
    """Those after it still run; the first text is that of the refusal."""
    failing = mutation("Object{data: {'a': object.one}}", "Object{data: {'a': '1'}}", "Object{data: {'a': object.two}}")
    error = refusal(config_map(), failing, mutation_binding())
    assert ["one", "two"] == [cause.message.rpartition(" ")[2] for cause in error.causes]
    assert error.causes[0].message == error.message


COUNT = 'Object{data: {"%s": has(object.data) && "%s" in object.data ? object.data["%s"] + "+" : "1"}}'


def counting(name, key, **spec):
    """Return a policy that counts in the object how often it ran."""
    return mutation(COUNT % (key, key, key), name=name, **spec)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Never", "Never", {"a": "1", "b": "1"}),
        ("IfNeeded", "Never", {"a": "1+", "b": "1"}),
        ("Never", "IfNeeded", {"a": "1", "b": "1+"}),
        ("IfNeeded", "IfNeeded", {"a": "1+", "b": "1+"}),
    ],
)
def test_policies_that_want_it_run_once_more(first, second, expected):
    """In order of names, and never more than twice; that a policy ran is enough, it need not have changed anything."""
    bodies = (
        counting("m2", "b", reinvocationPolicy=second),
        counting("m1", "a", reinvocationPolicy=first),
        mutation_binding("b1", "m1"),
        mutation_binding("b2", "m2"),
    )
    assert expected == sent(config_map(), *bodies)["data"]


def test_a_policy_that_did_not_run_at_first_does_not_run_later():
    """Its conditions hold only after another policy has changed the object."""
    late = [{"name": "late", "expression": "has(object.data)"}]
    bodies = (
        counting("m1", "late", reinvocationPolicy="IfNeeded", matchConditions=late),
        counting("m2", "b", reinvocationPolicy="IfNeeded"),
        mutation_binding("b1", "m1"),
        mutation_binding("b2", "m2"),
    )
    assert {"b": "1+"} == sent(config_map(), *bodies)["data"]


def test_webhooks_and_policies_see_what_the_others_changed(tmp_path):
    """A webhook's change brings policies back, their change the webhooks that want it."""

    async def main():
        patch = patching({"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}})
        async with serving(tmp_path, again=answer, patch=patch) as served:
            hooks = configuration(
                "Mutating",
                webhook(served.client("again"), "a.x.y", reinvocationPolicy="IfNeeded"),
                webhook(served.client("patch"), "b.x.y"),
            )
            seen = mutation("Object{data: {'seen': string(has(object.metadata.labels))}}")
            seen["spec"]["reinvocationPolicy"] = "IfNeeded"
            _, view = cluster(hooks, seen, mutation_binding())
            found = await admitted(admission(view), request(config_map()))
        assert ({"seen": "true"}, {"by": "hook"}) == (found["data"], found["metadata"]["labels"])
        shown = [
            (path.strip("/").partition("?")[0], review["request"]["object"]["data"]) for path, review in served.asked
        ]
        assert [("again", {"seen": "false"}), ("patch", {"seen": "false"}), ("again", {"seen": "true"})] == shown

    asyncio.run(main())


def test_what_cannot_be_configured_is_reported_first_with_the_reason():
    """All refusals are listed; one about the configuration is no verdict of a policy."""
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    missing = {"name": "none", "namespace": "x", "parameterNotFoundAction": "Deny"}
    bodies = (
        mutation("Object{data: {'a': object.nope}}", name="m1"),
        mutation("Object{}", name="m2", paramKind=kind),
        mutation_binding("b1", "m1"),
        mutation_binding("b2", "m2", paramRef=missing),
    )
    error = refusal(config_map(), *bodies)
    first = (
        "policy 'm2' with binding 'b2' denied request: failed to configure binding: "
        "no params found for policy binding with `Deny` parameterNotFoundAction"
    )
    assert (403, "Forbidden", first) == (error.status, error.reason, error.message)
    assert [first, "policy 'm1' with binding 'b1' denied request: "] == [
        cause.message.partition("expression")[0] for cause in error.causes
    ]


def test_authorizers_of_policies_know_paths_objects_and_reasons():
    """The object of the request, other resources, paths, and why."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "r"},
        "rules": [
            {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["c"], "verbs": ["mark"]},
            {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["patch"]},
        ],
    }
    bound = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "r"},
        "roleRef": {"kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "name": "jane"}],
    }
    scale = "authorizer.group('apps').resource('deployments').subresource('scale')"
    checks = (
        "authorizer.path('/metrics').check('get').allowed() && !authorizer.path('/healthz').check('get').allowed()",
        "authorizer.requestResource.check('mark').allowed() && !authorizer.requestResource.check('other').allowed()",
        f"{scale}.namespace('x').name('d').check('patch').allowed() && !{scale}.check('get').allowed()",
        f'{scale}.check(\'patch\').reason() == \'RBAC: allowed by ClusterRoleBinding "r" of ClusterRole "r" '
        'to User "jane"\'',
        "!authorizer.requestResource.check('mark').errored() && authorizer.requestResource.check('x').error() == ''",
    )
    conditions = [{"name": "c", "expression": "authorizer.requestResource.check('mark').allowed()"}]
    policies = [policy({"expression": text}, name=f"p{index}") for index, text in enumerate(checks)]
    bindings = [binding(f"b{index}", f"p{index}") for index in range(len(checks))]
    _, view = cluster(*policies, *bindings, role, bound)
    assert config_map() == asyncio.run(
        admitted(admission(view, authorizer=RbacAuthorizer(view)), request(config_map()))
    )
    guarded = policy({"expression": "false"}, matchConditions=conditions)
    _, view = cluster(guarded, binding(), role, bound)
    chain = admission(view, authorizer=RbacAuthorizer(view))
    with pytest.raises(StatusError, match="failed expression: false"):
        asyncio.run(admitted(chain, request(config_map())))
    assert config_map("d") == asyncio.run(admitted(chain, request(config_map("d"))))
