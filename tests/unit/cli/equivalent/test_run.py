"""`pyverno equivalent`: finds differences, shows them small, and never claims more than it tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyverno.kube.schemas import schema_set
from pyverno.kube.yaml.documents import load_documents
from pyverno.offline.policylibrary import Control, list_controls
from tests.support.commandline import Run

OLD = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: no-latest}
spec:
  rules:
  - name: tag
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: no latest
      pattern: {spec: {"=(initContainers)": [{image: "!*:latest"}], containers: [{image: "!*:latest"}]}}
"""
NEW = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: no-latest}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
  validations:
  - message: no latest
    expression: (object.spec.containers + object.spec.?initContainers.orValue([])).all(c, !c.image.endsWith(':latest'))
"""
FORGETFUL = NEW.replace("(object.spec.containers + object.spec.?initContainers.orValue([]))", "object.spec.containers")
AUTOGEN_KINDS = "ReplicationController,Pod/ephemeralcontainers"


@pytest.fixture
def sides(folder: Path) -> None:
    """Files with a policy, its twin, and a twin that forgets a list of containers."""
    for name, text in (("old", OLD), ("new", NEW), ("forgetful", FORGETFUL)):
        (folder / f"{name}.yaml").write_text(text)


@pytest.mark.usefixtures("sides")
def test_a_forgotten_list_is_found(cli: Run) -> None:
    """On an object that has little more than what shows it."""
    ran = cli(
        "equivalent",
        "old.yaml",
        "forgetful.yaml",
        "--kind",
        "Pod",
        "--not-kind",
        "Pod/ephemeralcontainers",
        "-o",
        "json",
    )
    found = json.loads(ran.out)["counterexample"]
    assert (1, "decision") == (ran.code, found["difference"])
    assert ("deny", "allow") == (found["old"]["verdict"], found["new"]["verdict"])
    (init,) = found["resource"]["spec"]["initContainers"]
    assert init["image"].endswith(":latest")
    assert 1 == len(found["resource"]["spec"]["containers"])
    assert "labels" not in found["resource"]["metadata"]


@pytest.mark.usefixtures("sides")
def test_a_difference_is_explained_on_both_sides(cli: Run) -> None:
    """The field that one side refuses, and the expression that the other one found true."""
    ran = cli("equivalent", "old.yaml", "forgetful.yaml", "--kind", "Pod", "--not-kind", "Pod/ephemeralcontainers")
    old, _, new = ran.out.partition("new (forgetful.yaml): allow\n")
    assert "    pattern: fail\n      spec.initContainers[0].image: wanted" in old
    assert "spec.validations[0].expression: object.spec.containers.all(c, !c.image.endsWith(':latest')): true" in new


@pytest.mark.usefixtures("sides")
def test_the_same_seed_finds_the_same(cli: Run) -> None:
    """Word for word."""
    words = (
        "equivalent",
        "old.yaml",
        "forgetful.yaml",
        "--kind",
        "Pod",
        "--not-kind",
        "Pod/ephemeralcontainers",
        "--seed",
        "7",
    )
    assert cli(*words).out == cli(*words).out


@pytest.mark.usefixtures("sides")
def test_without_a_difference_the_tried_requests_are_counted(cli: Run) -> None:
    """Requests and verdicts of both sides, and not the word equivalent."""
    ran = cli("equivalent", "old.yaml", "new.yaml", "-n", "200", "--not-kind", AUTOGEN_KINDS)
    assert (0, "") == (ran.code, ran.err)
    assert "no difference found in" in ran.out
    assert "apps/v1/Deployment UPDATE" in ran.out
    assert "deny" in ran.out
    assert "equivalent" not in ran.out


@pytest.mark.usefixtures("sides")
def test_kinds_that_one_side_leaves_out_are_a_difference(cli: Run) -> None:
    """Autogen of policies in CEL does not know ReplicationControllers."""
    ran = cli("equivalent", "old.yaml", "new.yaml", "--kind", AUTOGEN_KINDS)
    assert 1 == ran.code
    assert "kind: ReplicationController" in ran.out
    assert "no match" in ran.out


@pytest.mark.usefixtures("sides")
def test_a_side_that_never_blocks_makes_it_void(cli: Run, folder: Path) -> None:
    """Two policies that match nothing agree on everything."""
    (folder / "nothing.yaml").write_text(
        OLD.replace("[Pod]}}]", "[Pod], names: [NEVER]}}]").replace("  rules:", "  background: false\n  rules:")
    )
    ran = cli("equivalent", "nothing.yaml", "nothing.yaml", "-n", "50", "--kind", "Pod")
    assert 2 == ran.code
    assert "this says nothing: the first side never blocked" in ran.out


@pytest.mark.usefixtures("sides")
def test_deletions_that_no_side_matches_are_no_changes(cli: Run) -> None:
    """A deletion leaves no object that the two sides could change differently."""
    ran = cli("equivalent", "old.yaml", "old.yaml", "-n", "20", "--kind", "Pod", "--operation", "DELETE")
    assert 2 == ran.code
    assert "old: 20 no match; " in ran.out


@pytest.mark.usefixtures("sides")
def test_a_record_holds_for_the_policies_it_was_made_of(cli: Run, folder: Path) -> None:
    """Comments may change, rules may not; other files are errors."""
    made = cli(
        "equivalent", "old.yaml", "new.yaml", "-n", "100", "--not-kind", AUTOGEN_KINDS, "--certificate", "record.json"
    )
    check = ("equivalent", "old.yaml", "new.yaml", "--check", "record.json")
    assert (0, 0) == (made.code, cli(*check).code)
    (folder / "new.yaml").write_text(f"# reviewed\n{NEW}")
    assert 0 == cli(*check).code
    (folder / "new.yaml").write_text(FORGETFUL)
    changed = cli(*check)
    assert (1, "new.yaml has changed since the comparison: compare again\n") == (changed.code, changed.out)
    assert 3 == cli("equivalent", "old.yaml", "new.yaml", "--check", "old.yaml").code


@pytest.mark.usefixtures("sides")
def test_mutations_are_compared_by_the_object_they_leave(cli: Run, folder: Path) -> None:
    """The rest of the object included."""
    mutate = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: team}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(team): x}}}}
"""
    (folder / "one.yaml").write_text(mutate)
    (folder / "two.yaml").write_text(mutate.replace("+(team)", "team"))
    assert 0 == cli("equivalent", "one.yaml", "one.yaml", "-n", "60").code
    ran = cli("equivalent", "one.yaml", "two.yaml", "-n", "400", "-o", "json")
    assert "mutation" == json.loads(ran.out)["counterexample"]["difference"]


@pytest.mark.usefixtures("sides")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("old.yaml", "missing.yaml"), "does not exist"),
        (("old.yaml", "good.yaml"), "good.yaml"),
        (("old.yaml", "new.yaml", "--kind", "Secret"), "no kind to generate objects of"),
        (("old.yaml", "new.yaml", "--operation", "PATCH"), "PATCH"),
        (("old.yaml", "new.yaml", "-r", "missing.yaml"), "missing.yaml"),
    ],
)
def test_unusable_input_is_an_error_of_its_own(words: tuple[str, ...], reason: str, cli: Run) -> None:
    """It cannot be taken for a difference."""
    ran = cli("equivalent", *words)
    assert (3, "") == (ran.code, ran.out)
    assert reason in ran.err


GROUPS = frozenset(group for group, *_ in schema_set().kinds)


def _matches_known_kinds(control: Control) -> bool:
    """Return whether objects can be generated: the schemas hold the kinds of Kubernetes itself only."""
    rules = load_documents(control.path.read_bytes())[0].value["spec"]["matchConstraints"]["resourceRules"]
    return GROUPS.issuperset(group for rule in rules for group in rule["apiGroups"])


TWINS = tuple(
    control.name.removeprefix("cel/")
    for control in list_controls()
    if control.is_cel and control.kind == "ValidatingPolicy" and _matches_known_kinds(control)
)


@pytest.mark.parametrize("name", TWINS[::3])
def test_twins_of_the_library_do_not_differ(name: str, cli: Run) -> None:
    """On a few dozen generated objects each; a nightly run and `pyverno equivalent` try more."""
    ran = cli("equivalent", f"@{name}", f"@cel/{name}", "-n", "36", "--not-kind", AUTOGEN_KINDS)
    assert ran.code in (0, 2), ran.out


WIDGETS = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: widgets}
spec:
  rules:
  - name: size
    match: {any: [{resources: {kinds: [example.com/v1/Widget]}}]}
    validate: {message: m, pattern: {spec: {size: "<=5"}}}
"""


def test_objects_of_custom_kinds_are_generated(cli: Run, folder: Path) -> None:
    """By the types that rules compare with, or by their definition."""
    (folder / "one.yaml").write_text(WIDGETS)
    (folder / "two.yaml").write_text(WIDGETS.replace("<=5", "<5"))
    ran = cli("equivalent", "one.yaml", "two.yaml", "-n", "100")
    assert (1, True, True) == (ran.code, "kind: Widget" in ran.out, "size: 5" in ran.out)
    schema = "{type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 4}}}}}"
    (folder / "crd.yaml").write_text(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n"
        "spec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: widgets, kind: Widget}\n"
        f"  versions:\n  - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}\n"
    )
    assert 1 != cli("equivalent", "one.yaml", "two.yaml", "-n", "100", "--crd", "crd.yaml").code
