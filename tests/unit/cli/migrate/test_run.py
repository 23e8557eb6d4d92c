"""`pyverno migrate`: what goes to stdout and stderr, exit codes, folders, and their check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyverno.compiler.migration.validating import RulePart, convert_validate
from pyverno.kube.yaml.documents import load_documents
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.rule import Rule
from pyverno.value import replace
from tests.support.commandline import Run

POLICY = """\
# images come from us
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: images}
spec:
  rules:
  # latest moves
  - name: no-latest
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      failureAction: Enforce
      message: no latest
      pattern: {spec: {containers: [{image: "!*:latest"}]}}
"""
ROLES = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: roles}
spec:
  background: false
  rules:
  - name: admins
    match: {any: [{resources: {kinds: [Pod]}, clusterRoles: [admin]}]}
    validate:
      message: not by role
      pattern: {spec: {hostNetwork: true}}
"""
BROKEN = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: broken}
spec:
  rules:
  - name: a
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate:
      patchesJson6902: |-
        value: [
  - name: b
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: always
      pattern: {spec: {hostname: "{{ foo }}"}}
"""
CUSTOM = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: widgets}
spec:
  rules:
  - name: size
    match: {any: [{resources: {kinds: [Widget]}}]}
    validate:
      message: too big
      pattern: {spec: {size: "<=5"}}
"""
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
"""
FEW = ("-n", "200")


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    """The policies of these tests as files."""
    for name, text in (("policy", POLICY), ("roles", ROLES), ("custom", CUSTOM), ("crd", CRD)):
        (folder / f"{name}.yaml").write_text(text)


def test_stdout_is_the_converted_policy_and_nothing_else(cli: Run) -> None:
    """Comments are kept, the report goes to stderr, and the exit code is 0 when everything was tested."""
    ran = cli("migrate", "policy.yaml", *FEW)
    document = load_documents(ran.out)[0].value
    assert (0, "ValidatingPolicy", "images") == (ran.code, document["kind"], document["metadata"]["name"])
    assert ran.out.startswith("# images come from us\n")
    assert "\n  # latest moves\n  - expression: " in ran.out
    assert ran.err == "images/no-latest: converted (tested) -> images\n1 of 1 converted and tested\n"
    annotations = document["metadata"]["annotations"]
    assert annotations["policies.pyverno.io/certificate"].startswith("no difference found in ")
    assert annotations["policies.pyverno.io/migrated-from"] == "ClusterPolicy/images: no-latest"


def test_stdin_is_a_file_too(cli: Run) -> None:
    """`-` as everywhere."""
    ran = cli("migrate", "-", *FEW, stdin=POLICY)
    assert (0, True) == (ran.code, ran.out.startswith("# images come from us\n"))


def test_what_has_no_equal_is_reported_and_stays(cli: Run) -> None:
    """With field, code and next step; nothing goes to stdout."""
    ran = cli("migrate", "roles.yaml", *FEW)
    assert (1, "") == (ran.code, ran.out)
    assert (
        "roles/admins: not convertible because of match.any[0].clusterRoles: CEL has no list of the user's roles "
        "(roles); next: match users or groups instead\n0 of 1 converted and tested\n"
    ) == ran.err


def test_unusable_input_ends_with_2(cli: Run) -> None:
    """A missing file, a broken policy, flags that exclude each other."""
    runs = [
        cli("migrate", "nothing.yaml"),
        cli("migrate", "invalid.yaml"),
        cli("migrate", "policy.yaml", "--diff", "--in-place"),
        cli("migrate", "policy.yaml", "--check"),
    ]
    assert [2, 2, 2, 2] == [ran.code for ran in runs]
    assert "`--diff` and `--in-place` cannot be combined" in runs[2].err


def test_all_errors_of_all_policies_are_reported(cli: Run) -> None:
    """In the order of the text; a patch that cannot be read is one error, and no empty rule besides."""
    Path("broken.yaml").write_text(BROKEN)
    ran = cli("migrate", "broken.yaml", "invalid.yaml")
    lines = ran.err.splitlines()
    starts = ["Error: broken.yaml:10:", "Error: broken.yaml:15:", "Error: invalid.yaml"]
    assert (2, [True] * len(starts)) == (ran.code, [a.startswith(b) for a, b in zip(lines, starts, strict=True)])
    assert "invalid patchesJson6902" in lines[0]
    assert "variable foo is not defined" in lines[1]


def test_a_folder_holds_policies_and_certificates_that_can_be_checked(cli: Run, folder: Path) -> None:
    """The check fails when either side has changed, without a new comparison."""
    assert 0 == cli("migrate", "policy.yaml", "--write", "new", *FEW).code
    checked = cli("migrate", "policy.yaml", "--write", "new", "--check")
    assert (0, "1 policy is converted as it is now, and tested\n") == (checked.code, checked.out)
    assert 0 == cli("equivalent", "policy.yaml", "new/images.yaml", "--check", "new/images.certificate.json").code
    certificate = json.loads((folder / "new" / "images.certificate.json").read_text())
    assert ("no difference found", []) == (certificate["result"], certificate["saysNothingBecause"])
    written = (folder / "new" / "images.yaml").read_text()
    (folder / "new" / "images.yaml").write_text(written.replace(":latest", ":newest"))
    changed = cli("migrate", "policy.yaml", "--write", "new", "--check")
    assert (1, True) == (changed.code, "has changed since it was tested" in changed.out)
    (folder / "policy.yaml").write_text(POLICY.replace(":latest", ":newest"))
    changed = cli("migrate", "policy.yaml", "--write", "new", "--check")
    assert (1, True) == (changed.code, "has changed since it was converted" in changed.out)


def test_in_place_keeps_what_was_not_converted(cli: Run, folder: Path) -> None:
    """Of two documents in one file, one has no equal."""
    (folder / "both.yaml").write_text(ROLES + "---\n" + POLICY)
    assert 1 == cli("migrate", "both.yaml", "--in-place", *FEW).code
    text = (folder / "both.yaml").read_text()
    assert text.startswith(ROLES)
    assert ["ClusterPolicy", "ValidatingPolicy"] == [each.value["kind"] for each in load_documents(text)]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_in_place_keeps_line_ends_and_byte_order_mark(cli: Run, folder: Path, mark: bytes) -> None:
    """A file from Windows stays one."""
    path = folder / "policy.yaml"
    path.write_bytes(mark + POLICY.replace("\n", "\r\n").encode())
    assert 0 == cli("migrate", "policy.yaml", "--in-place", *FEW).code
    written = path.read_bytes()
    assert (True, True) == (written.startswith(mark), b"kind: ValidatingPolicy\r\n" in written)
    assert written.count(b"\n") == written.count(b"\r\n")


def test_in_place_loses_nothing_when_a_file_cannot_be_written(
    cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old policy is replaced as a whole or not at all."""

    def full(_file: int, _data: bytes, *_rest: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("pyverno.offline.rewriting.os.fdopen", full)
        ran = cli("migrate", "policy.yaml", "--in-place", *FEW)
    assert (2, "Error: cannot write `policy.yaml`: no space left on device\n") == (ran.code, ran.err)
    assert (POLICY, []) == ((folder / "policy.yaml").read_text(), [*folder.glob(".*")])


def test_policies_of_one_name_have_files_of_their_own(cli: Run, folder: Path) -> None:
    """A ClusterPolicy and a Policy may share a name, as may Policies of several namespaces."""
    namespaced = POLICY.replace("ClusterPolicy", "Policy")
    shop = namespaced.replace("{name: images}", "{name: images, namespace: shop}")
    (folder / "shop.yaml").write_text(shop + "---\n" + shop.replace("shop", "bank"))
    for _ in range(2):
        assert 0 == cli("migrate", "policy.yaml", "shop.yaml", "--write", "new", *FEW).code
    stems = {path.name.removesuffix(".yaml") for path in (folder / "new").glob("*.yaml")}
    assert {"images.clusterpolicy", "images.policy.shop", "images.policy.bank"} == stems
    assert 0 == cli("migrate", "policy.yaml", "shop.yaml", "--write", "new", "--check").code


def test_one_object_twice_is_refused_before_the_work(cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As every other error of the files is: nothing is converted, nothing is written."""
    monkeypatch.setattr("pyverno.cli.migrate.run.convert_document", None)
    (folder / "again.yaml").write_text(POLICY)
    ran = cli("migrate", "policy.yaml", "again.yaml", "--write", "new")
    assert (2, False) == (ran.code, (folder / "new").exists())
    assert ran.err.startswith("Error: again.yaml:4:18: metadata.name: a second ClusterPolicy `images`, beside that of")
    (folder / "broken.yaml").write_text(BROKEN)
    broken = cli("migrate", "policy.yaml", "broken.yaml", "--write", "new")
    assert (2, 2) == (broken.code, broken.err.count("Error: broken.yaml:"))


def test_a_diff_shows_the_change(cli: Run) -> None:
    """As a patch of the source."""
    ran = cli("migrate", "policy.yaml", "--diff", *FEW)
    assert "-kind: ClusterPolicy\n" in ran.out
    assert "+kind: ValidatingPolicy\n" in ran.out


def test_reports_for_programs_and_pull_requests(cli: Run) -> None:
    """JSON and markdown, on stderr."""
    rows = json.loads(cli("migrate", "policy.yaml", "roles.yaml", "--report", "json", *FEW).err)["rules"]
    assert [("images", "converted (tested)", None), ("roles", "not convertible", "roles")] == [
        (row["policy"], row["state"], row.get("code")) for row in rows
    ]
    assert (
        "| images | no-latest | converted (tested) | images |  |"
        in cli("migrate", "policy.yaml", "--report", "markdown", *FEW).err
    )


def test_a_selection_leaves_the_other_rules_behind(cli: Run) -> None:
    """They are named, and the old policy keeps them."""
    ran = cli("migrate", "policy.yaml", "--select", "other*", *FEW)
    assert (1, "", True) == (ran.code, ran.out, "not-selected" in ran.err)


def test_custom_kinds_without_a_group_need_their_definition(cli: Run) -> None:
    """Without it the rule is refused; with it, it is converted and tested on objects of its schema."""
    without, given = cli("migrate", "custom.yaml"), cli("migrate", "custom.yaml", "--crd", "crd.yaml", *FEW)
    assert (1, True) == (
        without.code,
        "(unknown-kind); next: write it as group/version/Kind, or give its CustomResourceDefinition with --crd"
        in without.err,
    )
    assert "expression: has(object.spec) && object.spec.?size.orValue(0) <= 5" in given.out
    assert (0, True) == (given.code, "converted (tested)" in given.err)


def test_types_of_custom_kinds_are_those_that_the_rule_compares_with(cli: Run, folder: Path) -> None:
    """The policy selects the kind by its name, the report names the assumption, and examples correct it."""
    (folder / "custom.yaml").write_text(CUSTOM.replace("[Widget]", "[example.com/v1/Widget]"))
    ran = cli("migrate", "custom.yaml", *FEW)
    assert (0, True) == (ran.code, "no definition of example.com/Widget is known" in ran.err)
    spec = load_documents(ran.out)[0].value["spec"]
    assert [{"name": "kind", "expression": "request.kind.kind == 'Widget'"}] == spec["matchConditions"]
    assert ["*"] == spec["matchConstraints"]["resourceRules"][0]["resources"]
    assert "has(object.spec) && object.spec.?size.orValue(0) <= 5" == spec["validations"][0]["expression"]
    widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 5Gi}}"
    (folder / "example.yaml").write_text(widget)
    shown = cli("migrate", "custom.yaml", "-r", "example.yaml", *FEW)
    assert (0, True) == (shown.code, "isQuantity" in shown.out)


def test_the_plan_has_steps_with_checks(cli: Run) -> None:
    """Audit beside the old policy, the switch, the removal."""
    ran = cli("migrate", "policy.yaml", "--plan", *FEW)
    assert ["# step 1", "# step 2", "# step 3"] == [
        line[:8] for line in ran.out.splitlines() if line.startswith("# step")
    ]
    actions = [each.value["spec"].get("validationActions") for each in load_documents(ran.out)]
    assert [["Audit"], ["Deny"], None] == actions
    old = load_documents(ran.out)[2].value
    assert "Audit" == old["spec"]["rules"][0]["validate"]["failureAction"]


@pytest.mark.parametrize("target", ["cel", "vap"])
def test_a_rule_whose_cel_is_not_valid_stays_alone(
    cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """It costs neither the other rules nor the other policies their conversion, and nothing invalid is written."""

    def broken(policy: ClusterPolicy, rule: Rule, *given: Any, **named: Any) -> RulePart:
        part = convert_validate(policy, rule, *given, **named)
        bad = tuple({**each, "expression": "1 + 'a' == 2"} for each in part.validations)
        return replace(part, validations=bad) if rule.name == "bad" else part

    monkeypatch.setattr("pyverno.compiler.migration.policy.convert_validate", broken)
    rule = POLICY[POLICY.index("  - name: no-latest") :]
    (folder / "mixed.yaml").write_text(POLICY + rule.replace("no-latest", "bad"))
    ran = cli("migrate", "policy.yaml", "mixed.yaml", "--to", target, *FEW)
    assert (1, False) == (ran.code, "1 + 'a'" in ran.out)
    assert 2 == ran.err.count("no-latest: converted (tested)")
    assert "images/bad: not convertible: its form in CEL is not valid" in ran.err
    old = [each.value for each in load_documents(ran.out) if each.value["kind"] == "ClusterPolicy"]
    assert [["bad"]] == [[each["name"] for each in body["spec"]["rules"]] for body in old]


def test_several_processes_give_the_same(cli: Run, folder: Path) -> None:
    """In the same order."""
    (folder / "many").mkdir()
    for name in "abcd":
        text = POLICY.replace("name: images", f"name: {name}").replace("[Pod]", "[ConfigMap]")
        pattern = "{data: {image: '!*:latest'}}"
        (folder / "many" / f"{name}.yaml").write_text(text.replace(text[text.index("{spec:") :], pattern))
    one, two = (cli("migrate", "many", "-n", "20", "--workers", workers) for workers in "12")
    assert (one.code, one.out, one.err) == (two.code, two.out, two.err)


IMAGES = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  rules:
  - name: check
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["ghcr.io/example/*"]
      failureAction: Enforce
      attestors:
      - entries:
        - keyless: {issuer: https://ci.example, subject: "https://example/*", rekor: {url: https://rekor.sigstore.dev}}
"""


def test_rules_that_verify_images_are_converted_and_not_tested(cli: Run, folder: Path) -> None:
    """No registry is contacted; the other rules of the policy are tested."""
    (folder / "images.yaml").write_text(IMAGES)
    alone = cli("migrate", "images.yaml", *FEW)
    assert ["ImageValidatingPolicy"] == [each.value["kind"] for each in load_documents(alone.out)]
    assert (1, True) == (
        alone.code,
        "signed/check: converted, not tested -> signed: no registry was read for signatures" in alone.err,
    )
    latest = POLICY[POLICY.index("  - name: no-latest") :]
    (folder / "images.yaml").write_text(IMAGES + latest)
    both = cli("migrate", "images.yaml", *FEW)
    assert 2 == len([*load_documents(both.out)])
    assert (True, True) == ("no-latest: converted (tested)" in both.err, "check: converted, not tested" in both.err)
