"""Objects made for what policies read."""

from __future__ import annotations

from pyverno.compiler.equivalence.places import Site
from pyverno.compiler.equivalence.readings import Reading
from pyverno.compiler.equivalence.steering import sites_of, steered_objects
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import schema_set
from pyverno.policy.kinds import KNOWN_KINDS

PLAIN: JSONObject = {"kind": "ConfigMap"}
SITES = (Site(("data", "a"), ("x", "y")), Site(("data", "b"), ("1", "2")), Site(("metadata", "labels", "c"), ("z",)))


def values(*readings: Reading, kind: str = "Pod") -> dict[str, tuple[object, ...]]:
    """Return the values of each site by its path."""
    found = sites_of(readings, KNOWN_KINDS.by_kind(kind)[0], schema_set())
    return {"/".join(map(str, each.steps)): each.values for each in found}


def test_all_fields_are_set_at_once_and_each_is_left_out_in_turn() -> None:
    """The check of a rule decides only where its preconditions hold."""
    found = [*steered_objects(PLAIN, SITES)]
    whole = {"kind": "ConfigMap", "data": {"a": "x", "b": "1"}, "metadata": {"labels": {"c": "z"}}}
    assert whole == found[0]
    assert {**whole, "data": {"b": "1"}} in found
    assert {**whole, "data": {"a": "y", "b": "1"}} in found
    assert {"kind": "ConfigMap", "data": {"b": "2"}} in found
    assert {"kind": "ConfigMap", "data": {"a": "y", "b": "2"}} in found


def test_kinds_share_the_series() -> None:
    """Each begins with a part of its own, and makes the others later."""
    alone = [*steered_objects(PLAIN, SITES)]
    first, second = ([*steered_objects(PLAIN, SITES, (number, 2))] for number in range(2))
    fixed = next(number for number, (one, other) in enumerate(zip(first, second, strict=True)) if one != other)
    half = (len(alone) - fixed) // 2
    assert all(each in first[: fixed + half + 1] or each in second[: fixed + half + 1] for each in alone)
    assert len(alone) == len(first) == len(second)


def test_nothing_that_is_read_gives_no_objects() -> None:
    """Systematic objects come from the names alone then."""
    assert [] == [*steered_objects(PLAIN, ())]


def test_values_have_the_type_of_the_field() -> None:
    """Booleans, numbers beside a boundary, texts that fit a wildcard, lists of what is compared."""
    found = values(
        Reading(("spec", "hostNetwork"), ()),
        Reading(("spec", "priority"), (">10",)),
        Reading(("spec", "containers", 0, "image"), ("!*:latest",)),
        Reading(("spec", "containers", 0, "command"), ("sh",)),
        Reading(("spec", "containers", 0, "nonsense"), ("sh",)),
        Reading(("metadata", "labels", "a"), ("", "b")),
    )
    assert {True, False} == {*found["spec/hostNetwork"]}
    assert {9, 10, 11} <= {*found["spec/priority"]}
    assert ":latest" in found["spec/containers/0/image"]
    assert ["sh"] == found["spec/containers/0/command"][0]
    assert "spec/containers/0/nonsense" not in found
    assert "b" == found["metadata/labels/a"][0]
    assert "" in found["metadata/labels/a"]


def test_what_is_read_of_a_pod_is_set_in_the_template_of_a_controller() -> None:
    """Copies of a rule read the template; a rule for the controller itself reads its own labels."""
    readings: tuple[Reading, ...] = (
        Reading(("metadata", "labels", "a"), ("b",)),
        Reading(("spec", "hostPID"), ()),
    )
    labels = {f"{place}{name}" for place in ("", "spec/template/") for name in ("metadata/labels", "metadata/labels/a")}
    assert {*labels, "spec/template/spec/hostPID"} == {*values(*readings, kind="Deployment")}
    deep: JSON = "spec/jobTemplate/spec/template/spec/hostPID"
    assert deep in values(*readings, kind="CronJob")


def test_a_list_holds_all_values_that_a_policy_lists() -> None:
    """Of an enumeration with a value too few, the object that holds all of them tells."""
    capabilities = ("spec", "containers", 0, "securityContext", "capabilities")
    found = values(
        Reading((*capabilities, "add"), ("A", "B", "C"), (("A", "B", "C"),)),
        Reading((*capabilities, "drop", 0), ("D", "E"), (("D", "E"),)),
        Reading(("spec", "securityContext", "sysctls", 0, "name"), ("x", "y"), (("x", "y"),)),
        Reading(("spec", "containers", 0, "imagePullPolicy"), ("Always | Never",)),
        kind="CronJob",
    )
    spec = "spec/jobTemplate/spec/template/spec"
    assert ["A", "B", "C"] == found[f"{spec}/containers/0/securityContext/capabilities/add"][1]
    assert ["D", "E"] == found[f"{spec}/containers/0/securityContext/capabilities/drop"][0]
    assert [{"name": "x"}, {"name": "y"}] == found[f"{spec}/securityContext/sysctls"][0]
    assert [{"imagePullPolicy": "Always"}, {"imagePullPolicy": "Never"}] == found[f"{spec}/containers"][0]


def test_one_value_of_a_list_fits_and_the_other_does_not() -> None:
    """In both orders: a check of all, of any, of the first."""
    found = values(Reading(("spec", "containers", 0, "command"), ("sh",)))["spec/containers/0/command"]
    assert [each for each in found if isinstance(each, list) and len(each) == 2] == [
        ["sh", "shx"],
        ["sh", ""],
        ["", "sh"],
    ]


def test_a_map_has_another_entry_than_the_one_that_is_read() -> None:
    """Labels without this label differ from no labels at all."""
    labels, limits = ("metadata", "labels"), ("spec", "containers", 0, "resources", "limits")
    readings = (Reading((*labels, "team"), ("a",)), Reading((*limits, "memory"), ("1Gi",)))
    found = values(*readings)
    assert ({"other": "x"},) == found["metadata/labels"]
    assert ({"ephemeral-storage": "1Gi"},) == found["spec/containers/0/resources/limits"]
    pod = KNOWN_KINDS.by_kind("Pod")[0]
    objects = [*steered_objects({"kind": "Pod"}, sites_of(readings, pod, schema_set()))]
    assert {"other": "x"} in [each.get("metadata", {}).get("labels") for each in objects]
    assert {"other": "x", "team": "a"} in [each.get("metadata", {}).get("labels") for each in objects]
