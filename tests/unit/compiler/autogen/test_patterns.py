"""Rules about Pods get copies for pod controllers, exactly as upstream makes them."""

import pytest

from pyverno.compiler.autogen.patterns import ANNOTATION, autogen_controllers, expand
from pyverno.policy.clusterpolicy import ClusterPolicy
from tests.unit.policy.documents import POLICY, cluster_policy

ALL = ["DaemonSet", "Deployment", "Job", "StatefulSet", "ReplicaSet", "ReplicationController", "CronJob"]
CONTROLLERS = [
    "apps/v1/DaemonSet",
    "apps/v1/Deployment",
    "batch/v1/Job",
    "apps/v1/ReplicaSet",
    "v1/ReplicationController",
    "apps/v1/StatefulSet",
]


def annotated(value: str) -> str:
    return POLICY.replace("name: check", f"name: check\n  annotations: {{{ANNOTATION}: '{value}'}}", 1)


def with_action(action: str) -> ClusterPolicy:
    return cluster_policy(POLICY.partition("      validate:")[0] + action)


def copies(policy: ClusterPolicy) -> dict[str, dict]:
    return {rule.name: rule.raw for rule in expand(policy) if rule.name.startswith("autogen-")}


def test_copies_follow_the_written_rules():
    """First every written rule, then the copies, controllers before cron jobs."""
    assert [rule.name for rule in expand(cluster_policy(POLICY))] == ["pods", "autogen-pods", "autogen-cronjob-pods"]


def test_a_pattern_is_wrapped_into_the_template():
    """The pattern moves into the pod template, message and kinds follow."""
    made = copies(cluster_policy(POLICY))
    assert made["autogen-pods"] == {
        "name": "autogen-pods",
        "match": {"any": [{"resources": {"kinds": CONTROLLERS}}]},
        "validate": {
            "message": "host network is not allowed",
            "pattern": {"spec": {"template": {"spec": {"hostNetwork": False}}}},
        },
    }
    assert made["autogen-cronjob-pods"]["match"] == {"any": [{"resources": {"kinds": ["batch/v1/CronJob"]}}]}
    assert made["autogen-cronjob-pods"]["validate"]["pattern"] == {
        "spec": {"jobTemplate": {"spec": {"template": {"spec": {"hostNetwork": False}}}}}
    }


def test_copies_keep_the_place_of_their_origin():
    """A problem of a copy points at the rule that the author wrote."""
    assert {rule.path for rule in expand(cluster_policy(POLICY))} == {("spec", "rules", 0)}


@pytest.mark.parametrize(
    ("annotation", "names"),
    [
        ("none", []),
        ("", []),
        ("Deployment", ["autogen-pods"]),
        ("CronJob", ["autogen-cronjob-pods"]),
        ("Deployment,CronJob", ["autogen-pods", "autogen-cronjob-pods"]),
    ],
)
def test_the_annotation_chooses_controllers(annotation, names):
    """A comma list selects, none switches off."""
    assert list(copies(cluster_policy(annotated(annotation)))) == names


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kinds: [Pod]", "kinds: [Pod, Service]"),
        ("kinds: [Pod]", "kinds: [v1/Pod]"),
        ("kinds: [Pod]", "kinds: [Service]"),
        ("kinds: [Pod]", "kinds: [Pod]\n              name: a"),
        ("kinds: [Pod]", "kinds: [Pod]\n              names: [a]"),
        ("kinds: [Pod]", "kinds: [Pod]\n              selector: {matchLabels: {a: b}}"),
        ("kinds: [Pod]", "kinds: [Pod]\n              annotations: {}"),
        ("      validate:", "      exclude: {any: [{resources: {names: [a]}}]}\n      validate:"),
    ],
)
def test_some_matches_switch_autogen_off(old, new):
    """Matches that apply to Pods alone are not copied, whatever the annotation requests."""
    policy = cluster_policy(annotated("Deployment").replace(old, new))
    assert autogen_controllers(policy) == ()
    assert expand(policy) == policy.spec.rules


@pytest.mark.parametrize(
    "new",
    [
        "kinds: [Pod]\n              namespaces: [a]",
        "kinds: [Pod]\n              operations: [CREATE]",
        "kinds: [Pod]\n              namespaceSelector: {matchLabels: {a: b}}",
    ],
)
def test_other_matches_do_not(new):
    """Namespaces and operations hold for controllers as well."""
    assert list(autogen_controllers(cluster_policy(POLICY.replace("kinds: [Pod]", new)))) == ALL


@pytest.mark.parametrize(
    "action",
    [
        "      mutate: {patchesJson6902: '[]'}\n",
        "      mutate: {foreach: [{list: a, patchesJson6902: '[]'}]}\n",
        "      generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {}}\n",
    ],
)
def test_some_actions_switch_autogen_off(action):
    """JSON patches and generation are never copied."""
    assert autogen_controllers(with_action(action)) == ()


def test_only_pod_blocks_change_for_controllers_and_all_for_cron_jobs():
    """Upstream replaces the kinds of every block in the cron job copy."""
    text = POLICY.replace(
        "kinds: [Pod]",
        "kinds: [Pod]\n          - resources:\n              kinds: [Service]\n              operations: [CREATE]",
    )
    made = copies(cluster_policy(text))
    kinds = {name: [block["resources"]["kinds"] for block in raw["match"]["any"]] for name, raw in made.items()}
    assert kinds == {
        "autogen-pods": [CONTROLLERS, ["Service"]],
        "autogen-cronjob-pods": [["batch/v1/CronJob"], ["batch/v1/CronJob"]],
    }


def test_a_rule_that_excludes_other_kinds_gets_no_copy():
    """Exclude kinds without Pod stop the copy of that rule."""
    text = POLICY.replace(
        "      validate:", "      exclude: {any: [{resources: {kinds: [Deployment]}}]}\n      validate:"
    )
    assert copies(cluster_policy(text)) == {}


def test_variable_paths_move_by_text_replacement():
    """Conditions, messages and look-alike names are hit alike."""
    policy = with_action(
        "      preconditions: {all: [{key: '{{ request.object.spec.x }}', operator: Equals, value: 1}]}\n"
        "      validate:\n"
        "        message: '{{ request.oldObject.metadata.name }} request.object.specX'\n"
        "        deny: {conditions: {any: []}}\n"
    )
    made = copies(policy)["autogen-cronjob-pods"]
    assert made["preconditions"]["all"][0]["key"] == "{{ request.object.spec.jobTemplate.spec.template.spec.x }}"
    assert made["validate"]["message"] == (
        "{{ request.oldObject.spec.jobTemplate.spec.template.metadata.name }} "
        "request.object.spec.jobTemplate.spec.template.specX"
    )


def test_cel_has_its_own_prefixes():
    """CEL reads object without request."""
    policy = with_action(
        "      validate: {cel: {expressions: [{expression: object.spec.a == oldObject.metadata.b}]}}\n"
    )
    (expression,) = copies(policy)["autogen-pods"]["validate"]["cel"]["expressions"]
    assert expression["expression"] == "object.spec.template.spec.a == oldObject.spec.template.metadata.b"


def test_references_in_messages_move_behind_their_pattern():
    """The pivot of anyPattern includes the index."""
    policy = with_action(
        "      validate:\n        message: 'see $(./../anyPattern/0/spec/a) "
        "here'\n        anyPattern: [{spec: {a: 1}}]\n"
    )
    made = copies(policy)
    assert made["autogen-pods"]["validate"]["message"] == "see $(./../anyPattern/0/spec/template/spec/a) here"
    assert made["autogen-cronjob-pods"]["validate"]["message"] == (
        "see $(./../anyPattern/0/spec/jobTemplate/spec/template/spec/template/spec/a) here"
    )


def test_a_foreach_patch_loses_order_and_nested_loops():
    """Upstream copies list, context, preconditions and the patch only."""
    policy = with_action("      mutate: {foreach: [{list: a, order: Ascending, foreach: [{list: b}]}]}\n")
    assert copies(policy)["autogen-pods"]["mutate"] == {
        "foreach": [{"list": "a", "patchStrategicMerge": {"spec": {"template": None}}}]
    }


def test_manifests_get_no_copy():
    """Signed manifests are checked on what was signed."""
    policy = with_action("      validate: {manifests: {attestors: [{entries: [{keys: {publicKeys: a}}]}]}}\n")
    assert copies(policy) == {}


def test_names_are_cut_to_label_length():
    """A copy's name has at most 63 characters."""
    policy = cluster_policy(POLICY.replace("name: pods", f"name: {'r' * 60}"))
    assert {len(name) for name in copies(policy)} == {63}


def test_written_copies_give_way():
    """A rule with a copy's name is left out when there are copies."""
    text = POLICY + POLICY.partition("  rules:\n")[2].replace("name: pods", "name: autogen-old")
    assert [rule.name for rule in expand(cluster_policy(text))] == ["pods", "autogen-pods", "autogen-cronjob-pods"]


def test_copies_do_not_change_the_origin():
    """The written document stays as it was."""
    policy = cluster_policy(POLICY)
    expand(policy)
    assert policy.raw == cluster_policy(POLICY).raw


def test_what_stays_the_same_is_shared_with_the_origin():
    """A pattern whose texts do not move is not copied: its copies cost no memory."""
    policy = cluster_policy(POLICY)
    pattern = policy.spec.rules[0].raw["validate"]["pattern"]
    made = copies(policy)
    assert made["autogen-pods"]["validate"]["pattern"]["spec"]["template"] is pattern
