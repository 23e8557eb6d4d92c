"""`pyverno fix`: deprecated forms become current ones that mean the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyverno.cli.fix.policy import fix_policy
from pyverno.cli.fix.suite import fix_suite
from pyverno.kube.yaml.documents import load_documents

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commandline import Run

OLD = """\
# a comment
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: no-latest
spec:
  validationFailureAction: enforce
  failurePolicy: Ignore
  webhookTimeoutSeconds: 5
  schemaValidation: false
  rules:
  - name: tag
    match:
      resources: {kinds: [Pod]}
    exclude:
      resources: {namespaces: [kube-system]}
    preconditions:
    - {key: "{{ request.operation }}", operator: Equals, value: CREATE}
    validate:
      message: no latest
      deny:
        conditions:
        - {key: "{{ request.object.spec.containers[0].image }}", operator: Equals, value: "*:latest"}
"""

OLD_TEST = """\
name: old
policies: [latest.yaml]
resources: [good.yaml, bad.yaml]
results:
- {policy: no-latest, rule: tag, resource: good, namespace: shop, kind: Pod, status: pass}
- {policy: no-latest, rule: tag, resource: bad, kind: Pod, result: fail}
- {policy: no-latest, rule: tag, resources: [good], kind: Pod, result: pass}
"""


def one(text: str) -> Any:
    """The value of the only document."""
    (document,) = load_documents(text)
    return document.value


def test_deprecated_fields_of_a_policy_are_moved() -> None:
    """One warning each."""
    fixed, messages = fix_policy(one(OLD))
    spec = fixed["spec"]
    assert {"webhookConfiguration", "rules"} == set(spec)
    assert {"failurePolicy": "Ignore", "timeoutSeconds": 5} == spec["webhookConfiguration"]
    (rule,) = spec["rules"]
    assert {"any": [{"resources": {"kinds": ["Pod"]}}]} == rule["match"]
    assert {"any": [{"resources": {"namespaces": ["kube-system"]}}]} == rule["exclude"]
    assert ["all"] == list(rule["preconditions"])
    assert ["all"] == list(rule["validate"]["deny"]["conditions"])
    assert "Enforce" == rule["validate"]["failureAction"]
    assert 8 == len(messages)


def test_a_current_policy_stays_as_it_is() -> None:
    """So do documents of other kinds, and rules without exclude."""
    document = fix_policy(one(OLD))[0]
    assert (document, []) == fix_policy(document)
    other = {"apiVersion": "v1", "kind": "Pod", "spec": {"failurePolicy": "x"}}
    assert (other, []) == fix_policy(other)


def test_fields_for_existing_objects_move_into_the_rules() -> None:
    """A value that the rule sets itself wins."""
    rules = [{"name": "a", "generate": {"kind": "X"}}, {"name": "b", "generate": {"generateExisting": False}}]
    document = {
        "apiVersion": "kyverno.io/v1",
        "kind": "Policy",
        "spec": {"generateExisting": True, "mutateExistingOnPolicyUpdate": True, "rules": rules},
    }
    fixed, _ = fix_policy(document)
    first, second = fixed["spec"]["rules"]
    assert (True, False) == (first["generate"]["generateExisting"], second["generate"]["generateExisting"])
    assert ["rules"] == list(fixed["spec"])


def test_fix_policy_writes_only_with_the_flag_and_verdicts_stay(cli: Run, folder: Path) -> None:
    """The old file stays beside the new one, which keeps its comments and quotes."""
    path = folder / "old.yaml"
    path.write_text(OLD)
    before = cli("apply", "old.yaml", "-r", "bad.yaml", "--compat", "kyverno")
    ran = cli("fix", "policy", "old.yaml")
    assert (0, OLD) == (ran.code, path.read_text())
    assert ran.out.startswith("Processing file (old.yaml)...\n  WARNING: ")
    assert ran.out.endswith("Done.\n")
    ran = cli("fix", "policy", "old.yaml", "--save")
    assert "  Saving file (old.yaml)...\n" in ran.out
    assert ran.out.endswith("  Saving file (old.yaml)...\n    OK\nDone.\n")
    assert path.read_text().startswith("# a comment\n")
    assert """    preconditions:
      all:
      - {key: "{{ request.operation }}", operator: Equals, value: CREATE}
""" in path.read_text()
    assert OLD == (folder / "old.yaml.bak").read_text()
    after = cli("apply", "old.yaml", "-r", "bad.yaml", "--compat", "kyverno")
    assert (before.code, before.out) == (after.code, after.out)
    assert ("are deprecated" in before.err, "") == (True, after.err)
    assert "WARNING" not in cli("fix", "policy", "old.yaml").out


def test_files_that_can_not_be_read_are_errors_and_the_others_are_fixed(cli: Run, folder: Path) -> None:
    """The exit code is 1."""
    (folder / "many").mkdir()
    (folder / "many/a.yaml").write_text("a: [")
    (folder / "many/b.yaml").write_text(OLD)
    ran = cli("fix", "policy", "many", "--save")
    assert (1, True) == (ran.code, "  ERROR: many/a.yaml:" in ran.out)
    assert "    OK\n" in ran.out
    assert "Error: `gone` does not exist\n" == cli("fix", "policy", "gone").err


def test_a_deprecated_test_runs_after_it_was_fixed(cli: Run, folder: Path) -> None:
    """Also with its results joined."""
    path = folder / "kyverno-test.yaml"
    path.write_text(OLD_TEST)
    assert 1 == cli("test", ".").code
    ran = cli("fix", "test", ".", "--save", "--compress")
    assert ran.out.startswith("Processing test file (kyverno-test.yaml)...\n  WARNING: apiVersion was missing\n")
    assert 2 == len(one(path.read_text())["results"])
    assert 0 == cli("test", ".", "--strict").code


def test_results_are_joined_when_only_their_resources_differ() -> None:
    """Rows about all resources stay alone."""
    rows = [
        {"policy": "p", "result": "pass", "resources": ["a"]},
        {"policy": "p", "result": "pass"},
        {"policy": "p", "result": "pass", "resources": ["b", "a"]},
    ]
    fixed, messages = fix_suite({"apiVersion": "v", "kind": "Test", "results": rows}, compress=True)
    assert [{**rows[0], "resources": ["a", "b"]}, rows[1]] == fixed["results"]
    assert ["3 results were joined into 2"] == messages


def test_force_writes_files_without_changes(cli: Run, folder: Path) -> None:
    """In the form that pyverno writes; another file name can be given."""
    path = folder / "t.yaml"
    path.write_text("kind: Test\napiVersion: cli.kyverno.io/v1alpha1\nresults: []\n")
    cli("fix", "test", ".", "-f", "t.yaml", "--save")
    assert path.read_text().startswith("kind")
    cli("fix", "test", ".", "--file-name", "t.yaml", "--save", "--force")
    assert path.read_text().startswith("apiVersion")


def test_a_file_of_windows_keeps_comments_and_line_ends(cli: Run, folder: Path) -> None:
    """Its corrections are those of the same file with other line ends."""
    text = OLD.replace("kind: ClusterPolicy\n", "kind: ClusterPolicy # ours\n")
    (folder / "unix.yaml").write_text(text)
    (folder / "windows.yaml").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert 0 == cli("fix", "policy", "--save", "unix.yaml", "windows.yaml").code
    expected = (folder / "unix.yaml").read_bytes().replace(b"\n", b"\r\n")
    assert b"\xef\xbb\xbf" + expected == (folder / "windows.yaml").read_bytes()
    assert b"# ours" in expected
