"""Classes of differences and the summary of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyverno.kube.json import JSON, JSONObject
from tests.differential.classes import CLASSES, classify
from tests.differential.compare import ABSENT, Difference, differences
from tests.differential.generate.batches import Batch
from tests.differential.runs import Answer, Key
from tests.differential.summary import Summary

DIFFERENCES = Path(__file__).resolve().parents[2] / "docs" / "differences.md"
RULE = {"name": "v0", "validate": {"pattern": {"metadata": {"name": "a*"}}}}
POLICY = {"kind": "ClusterPolicy", "metadata": {"name": "p00"}, "spec": {"rules": [RULE]}}
BATCH = Batch(1, "rules", (POLICY,), ({"kind": "Pod", "metadata": {"name": "r0"}},))
KEY = Key("result", "p00", "autogen-v0", "Pod/r0")
OBJECT = Key("object", "p00", resource="Pod/r0")


def difference(ours: Answer, theirs: Answer) -> Difference:
    """Return a difference about one rule with a pattern."""
    return Difference(BATCH, KEY, ours, theirs)


def test_every_class_names_a_paragraph_that_is_there() -> None:
    """A class must point to its paragraph in docs/differences.md."""
    text = DIFFERENCES.read_text(encoding="utf-8")
    assert [] == [each.name for each in CLASSES if each.paragraph not in text]


def test_a_documented_text_is_explained_and_another_verdict_never_is() -> None:
    """Texts of pattern mismatches may differ; pass and fail may not."""
    ours = Answer("skip", "conditional anchor mismatch: resource value does not match pattern at path /a/")
    theirs = Answer("skip", "conditional anchor mismatch: resource value 'x' does not match 'a' at path /a/")
    found = classify(difference(ours, theirs))
    assert found is not None
    assert found.name == "pattern mismatches name only the path"
    assert classify(difference(Answer("pass", ours.text), Answer("fail", theirs.text))) is None
    assert classify(difference(ABSENT, Answer("fail", theirs.text))) is None


@pytest.mark.parametrize("prefix", ["", "validation failure: "])
def test_a_denial_without_a_message_is_explained_in_a_loop_as_well(prefix: str) -> None:
    """Not a denial with another message, and not another verdict."""
    ours = Answer("fail", f"{prefix}validation error: rule v0 failed")
    found = classify(difference(ours, Answer("fail", prefix)))
    assert found is not None
    assert found.name == "denials without a message"
    assert classify(difference(ours, Answer("fail", prefix + "bad"))) is None
    assert classify(difference(ours, Answer("skip", prefix))) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "explained"),
    [
        ("unknown function: toupper: did you mean `to_upper`?", "unknown function: toupper", True),
        ("unknown function: toupper: did you mean `to_upper`?", "unknown function: tolower", False),
        ("unknown function: toupper: did you mean `to_upper`?", "unknown function: toupper: not here", False),
        ("unknown function: toupper", "unknown function: toupper()", False),
    ],
)
def test_a_suggestion_behind_an_unknown_function_is_explained(ours: str, theirs: str, explained: bool) -> None:
    """Only the suggestion may be added; both answers are errors of a query."""
    prefix = "Error: error evaluating JMESPath expression: "
    batch = Batch(1, "queries", (), ({},), queries=("toupper(a)",))
    key = Key("query", rule="toupper(a)")
    found = Difference(batch, key, Answer("error", prefix + ours), Answer("error", prefix + theirs))
    assert explained == (classify(found) is not None)
    assert classify(Difference(batch, key, found.ours, Answer("value", prefix + theirs))) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "name"),
    [
        ({"a": 1}, {"a": 1, "(metadata)": {}}, "conditions written as fields"),
        ({"a": 1}, {"a": 2, "(metadata)": {}}, None),
        ({"a": [1, 2]}, {"a": [2, 1]}, "order of items of a strategic merge"),
        ({"a": [1, 2]}, {"a": [2, 2]}, None),
    ],
)
def test_objects_of_strategic_merges_differ_only_as_documented(ours: JSON, theirs: JSON, name: str | None) -> None:
    """Fields named like conditions and the order of items; every other value is unexplained."""
    rule = {"name": "m0", "mutate": {"patchStrategicMerge": {"(metadata)": {}}}}
    policy = {"kind": "ClusterPolicy", "metadata": {"name": "p00"}, "spec": {"rules": [rule]}}
    batch = Batch(1, "mutate", (policy,), BATCH.resources)
    key = Key("object", "p00", resource="Pod/r0")
    found = classify(Difference(batch, key, *(Answer("changed", json.dumps(each)) for each in (ours, theirs))))
    assert name == (found and found.name)


def mutation(patch: JSON, ours: JSON, theirs: JSON) -> Difference:
    """Return a difference of the objects that a strategic merge gives."""
    rule = {"name": "m0", "mutate": {"patchStrategicMerge": patch}}
    policy = {"kind": "ClusterPolicy", "metadata": {"name": "p00"}, "spec": {"rules": [rule]}}
    batch = Batch(1, "mutate", (policy,), BATCH.resources)
    return Difference(batch, OBJECT, *(Answer("changed", json.dumps(each)) for each in (ours, theirs)))


@pytest.mark.parametrize(
    ("theirs", "is_explained"),
    [
        ({"a": 1, "items": []}, True),
        ({"a": 1, "items": [{"name": "x"}]}, True),
        ({"a": 1, "items": [{"name": "x"}, {"name": "z", "+(image)": "2"}, {"name": "y"}]}, True),
        ({"a": 2, "items": []}, False),
        ({"items": []}, False),
        ({"a": 1, "items": [{"name": "z"}]}, False),
        ({"a": 1, "items": [{"name": "x", "more": 1}]}, False),
        ({"a": 1, "items": [{"name": "x"}, {"name": "x"}, {"name": "x"}]}, False),
    ],
)
def test_items_are_removed_by_patches_with_several_conditional_elements_only(theirs: JSON, is_explained: bool) -> None:
    """Kyverno may lack items and fields of the list that the patch names; everything else is unexplained."""
    ours = {"a": 1, "items": [{"name": "x", "image": "1"}, {"name": "y"}]}
    several = {"items": [{"(name)": "x", "image": "1"}, {"(name)": "z", "image": "2"}]}
    found = classify(mutation(several, ours, theirs))
    assert ("items that a strategic merge removes" if is_explained else None) == (found and found.name)
    assert classify(mutation({"items": several["items"][:1]}, ours, theirs)) is None
    assert classify(mutation({"others": several["items"]}, ours, theirs)) is None


def test_items_without_names_may_be_lost_where_a_patch_does_not_touch_them() -> None:
    """Also those with equal names; not named ones, and not their fields."""
    patch: JSON = {"metadata": {"labels": {"a": "b"}}}
    unnamed, named = [{"image": "a"}, {"name": "x"}], [{"name": "y"}, {"name": "x", "image": "a"}]
    for ours, theirs, is_explained in (
        (unnamed, unnamed[:1], True),
        ([{"name": "x"}, {"name": "x"}], [{"name": "x"}], True),
        (named, named[:1], False),
        ([{"port": 1}, {"port": 2}], [{"port": 1}], True),
        (unnamed, [{"image": "b"}], False),
    ):
        found = classify(mutation(patch, {"items": ours}, {"items": theirs}))
        assert ("items without a merge key in objects" if is_explained else None) == (found and found.name)


def test_an_item_of_a_patch_without_a_name_may_empty_the_list() -> None:
    """Of the same name; a patch whose items have names explains nothing."""
    ours: JSONObject = {"items": [{"name": "x"}, {"name": "y"}]}
    for patch, is_explained in (
        ({"items": [{"image": "a"}]}, True),
        ({"items": [{"name": "x"}]}, False),
        ({"others": [{"image": "a"}]}, False),
    ):
        assert is_explained == (classify(mutation(patch, ours, {"items": []})) is not None)


def test_an_object_that_a_failed_rule_left_as_it_was_is_explained() -> None:
    """Where one of several rules reads a variable; not where ours has changed as well."""
    rules = [RULE, {"name": "m1", "mutate": {"patchesJson6902": "{{ request.object.data.a }}"}}]
    for written, ours, is_explained in (
        (rules, BATCH.resources[0], True),
        (rules, {"kind": "Pod"}, False),
        (rules[1:], BATCH.resources[0], False),
        ([RULE, RULE], BATCH.resources[0], False),
    ):
        policy = {"kind": "ClusterPolicy", "metadata": {"name": "p00"}, "spec": {"rules": written}}
        answers = (Answer("changed", json.dumps(each)) for each in (ours, {"kind": "Pod", "added": 1}))
        found = classify(Difference(Batch(1, "mutate", (policy,), BATCH.resources), OBJECT, *answers))
        assert is_explained == (found is not None)


def test_fields_that_a_rule_with_a_projection_did_not_add_are_explained() -> None:
    """Beside the changes of other rules; not a field of ours that Kyverno lacks, nor without a projection."""
    patch: JSON = {"metadata": {"shown": "{{ a[?b == 'c'] }}"}}
    ours: JSONObject = {"metadata": {"copied": 1}}
    theirs: JSONObject = {"metadata": {"copied": 1, "shown": "null"}}
    found = classify(mutation(patch, ours, theirs))
    assert found is not None
    assert found.name == "objects unchanged after errors under projections"
    assert classify(mutation(patch, theirs, ours)) is None
    assert classify(mutation({"metadata": {"shown": "{{ a.b }}"}}, ours, theirs)) is None


def test_a_list_that_is_a_condition_may_end_empty() -> None:
    """In Kyverno's object; not another list, and not a part of it."""
    ours: JSONObject = {"items": [{"name": "x"}], "others": [{"name": "y"}]}
    patch = {"(items)": [{"name": "x"}], "added": 1}
    found = classify(mutation(patch, ours, {**ours, "items": []}))
    assert found is not None
    assert found.name == "conditions written as fields"
    assert classify(mutation(patch, ours, {**ours, "others": []})) is None
    assert classify(mutation({"items": patch["(items)"]}, ours, {**ours, "items": []})) is None


def test_a_conditional_list_of_texts_that_becomes_the_value_is_explained() -> None:
    """`(c): ["*"]` writes its pattern over an empty list in Kyverno; other texts are unexplained."""
    for text, name in (("*", "conditions written as fields"), ("b", None)):
        found = classify(mutation({"(c)": ["*"], "added": 1}, {"c": [], "d": 1}, {"c": [text], "d": 1}))
        assert name == (found and found.name)


def test_an_item_that_a_later_patch_makes_in_an_emptied_list_is_explained() -> None:
    """It has some fields of ours; one with another value is unexplained."""
    ours: JSONObject = {"items": [{"name": "x", "env": [1]}, {"name": "y"}]}
    for env, name in (([1], "items without a merge key in objects"), ([2], None)):
        found = classify(mutation({"items": [{"image": "a"}]}, ours, {"items": [{"env": env}]}))
        assert name == (found and found.name)


def test_a_change_that_kyverno_loses_with_its_field_is_explained() -> None:
    """Where a patch has a field and a condition on it; not where it has one of them."""
    patch = {"metadata": {"(labels)": {"a": "b"}, "labels": {"c": "d"}}}
    rule = {"name": "m0", "mutate": {"patchStrategicMerge": patch}}
    for changed, name in ((rule, "fields beside conditions on them"), ({**rule, "mutate": {"metadata": {}}}, None)):
        policy = {"kind": "ClusterPolicy", "metadata": {"name": "p00"}, "spec": {"rules": [changed]}}
        batch = Batch(1, "mutate", (policy,), BATCH.resources)
        skipped = Answer("skip", "no patches applied")
        found = classify(Difference(batch, Key("result", "p00", "m0", "Pod/r0"), Answer("pass", "mutated"), skipped))
        assert name == (found and found.name)


def test_only_a_condition_that_is_not_evaluated_may_lack_its_variable() -> None:
    """Kyverno fails for all variables of the conditions of a mutation; not for another place, nor where we fail too."""
    text = "variable substitution failed: failed to resolve a.b at path {}: JMESPath query failed: Unknown key"
    batch = Batch(1, "mutate", (POLICY,), BATCH.resources)
    for ours, path, is_explained in (
        (Answer("pass"), "/preconditions/any/1/key", True),
        (Answer("skip", "no patches applied"), "/preconditions/all/0/value", True),
        (Answer("pass"), "/mutate/patchStrategicMerge/metadata", False),
        (Answer("error", text.format("/preconditions/any/0/key")), "/preconditions/any/1/key", False),
    ):
        found = classify(Difference(batch, KEY, ours, Answer("error", text.format(path))))
        name = "conditions of mutations that are not evaluated"
        assert is_explained == (found is not None and found.name == name)


def test_the_message_of_any_pattern_may_leave_out_one_that_compares_a_duration() -> None:
    """An integer is no duration in Kyverno's patterns; a message of one pattern is not explained by this."""
    for form, is_explained in (("anyPattern", True), ("pattern", False)):
        pattern = {"spec": {"periodSeconds": "<1h"}}
        rule = {"name": "v0", "validate": {form: [pattern] if form == "anyPattern" else pattern}}
        policy = {**POLICY, "spec": {"rules": [rule]}}
        batch = Batch(1, "wide", (policy,), BATCH.resources)
        texts = ("rule v0[0] failed at path /a/ rule v0[1] failed at path /b/", "rule v0[0] failed at path /a/")
        found = classify(Difference(batch, KEY, *(Answer("fail", text) for text in texts)))
        assert is_explained == (found is not None)


def test_a_cleanup_policy_that_matches_nothing_is_refused_as_in_a_cluster() -> None:
    """Kyverno's command evaluates it; other refusals are not explained by this."""
    policy = {"kind": "CleanupPolicy", "metadata": {"name": "p00"}, "spec": {}}
    batch = Batch(1, "deletions", (policy,), BATCH.resources)
    for text, name in (
        ("CleanupPolicy is matching an empty set", "cleanup policies that a cluster refuses"),
        ("bad", None),
    ):
        found = classify(Difference(batch, Key("policy", "p00"), Answer("refused", text), ABSENT))
        assert name == (found and found.name)


def test_results_of_a_policy_that_one_side_refuses_count_once() -> None:
    """The refusal is the difference, not each result that is missing."""
    ours = {Key("policy", "p00"): Answer("refused", "no such operator")}
    theirs = {KEY: Answer("pass"), Key("result", "p01", "v0", "Pod/r0"): Answer("pass")}
    found = [(str(each.key), each.aspect) for each in differences(BATCH, ours, theirs)]
    assert [("policy p00", "status"), ("result p01 v0 Pod/r0", "status")] == found


def test_a_summary_counts_and_prints_what_is_unexplained() -> None:
    """Counts by family and class, one group for like differences, with policy and resource."""
    summary = Summary([1])
    same = [difference(Answer("pass"), Answer("fail", f"value {number}")) for number in (1, 2)]
    explained = difference(Answer("fail", "rule failed"), Answer("fail", ""))
    summary.add("rules", 10, [*same, explained])
    found = summary.as_json()
    assert (10, 7, 2) == (found["total"], found["equal"], summary.unexplained)
    assert [("denials without a message", 1)] == [(each["name"], each["count"]) for each in found["classes"]]
    assert [(2, "result p00 autogen-v0 Pod/r0")] == [(each["count"], each["key"]) for each in found["unexplained"]]
    assert "unexplained: 2 in 1 groups" in summary.as_text()


def test_an_object_that_is_missing_behind_a_projection_is_explained() -> None:
    """Where the others are equal; not where we generate one that Kyverno does not."""
    rule = {"name": "g0", "generate": {"data": {"data": {"shown": "{{ (abs(request.object.kind)).* }}"}}}}
    policy = {"kind": "ClusterPolicy", "metadata": {"name": "p00"}, "spec": {"rules": [rule]}}
    batch = Batch(1, "generate", (policy,), BATCH.resources)
    for ours, theirs, name in (
        ("a", "a\nb", "objects generated with errors under projections"),
        ("", "a", "objects generated with errors under projections"),
        ("a\nc", "a\nb", None),
    ):
        answers = (Answer("generated", text) if text else ABSENT for text in (ours, theirs))
        found = classify(Difference(batch, Key("object", "p00", "", "generated"), *answers))
        assert name == (found and found.name)
