"""`pyverno apply`: every flag, the texts and the exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from pyverno.cli.apply.command import apply
from tests.support.documents import AUDITED, BAD, EXCEPTION, GOOD, LABEL, LATEST, NAMESPACE, pod

if TYPE_CHECKING:
    from tests.support.commandline import Run


TEAM = "dictionary.data.team"
CONTEXT = "    context:\n    - name: dictionary\n      configMap: {name: dictionary, namespace: default}\n"


def summary(text: str) -> dict[str, int]:
    """The counts of the summary line."""
    line = next(line for line in text.splitlines() if line.startswith("pass: "))
    return {name: int(count) for name, count in (part.split(": ") for part in line.strip().split(", "))}


def test_a_passing_resource_ends_with_0(cli: Run) -> None:
    """The whole text of a run without findings is that of upstream, but for a blank."""
    ran = cli("apply", "latest.yaml", "-r", "good.yaml")
    assert (0, "") == (ran.code, ran.err)
    expected = "\nApplying 1 policy rule(s) to 1 resource(s)...\n\npass: 1, fail: 0, warn: 0, error: 0, skip: 0\n"
    assert expected == ran.out


def test_a_failing_resource_ends_with_1_and_upstreams_violation_block(cli: Run) -> None:
    """With `--compat kyverno` the block names policy, resource, rule and message."""
    ran = cli("apply", "latest.yaml", "--resource", "bad.yaml", "--compat", "kyverno")
    assert 1 == ran.code
    assert (
        "policy no-latest -> resource shop/Pod/bad failed:\n"
        "1 - tag validation error: no latest. rule tag failed at path /spec/containers/0/image/\n\n" in ran.out
    )


@pytest.mark.parametrize("name", ["scanned", "in-cel"])
def test_a_policy_for_background_scans_only_is_evaluated(cli: Run, folder: Path, name: str) -> None:
    """`apply` evaluates policies with admission disabled too, because background scans would report the resource."""
    scanned = LATEST.replace("spec:", "spec:\n  admission: false", 1)
    cel = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: in-cel}
spec:
  evaluation: {admission: {enabled: false}}
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: "false", message: no latest}]
"""
    (folder / "scanned.yaml").write_text({"scanned": scanned, "in-cel": cel}[name])
    result = cli("apply", "scanned.yaml", "-r", "bad.yaml")
    assert (1, True) == (result.code, "no latest" in result.out), result


def test_both_names_of_a_flag_fill_one_list(cli: Run) -> None:
    """-r and --resources may be mixed, repeated and parted by commas."""
    ran = cli("apply", "latest.yaml", "-r", "good.yaml,good.yaml", "--resources", "good.yaml")
    assert 3 == summary(ran.out)["pass"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["apply"], "require policy"),
        (["apply", "latest.yaml"], "resource file(s) or cluster required"),
        (
            ["apply", "latest.yaml", "-r", "good.yaml", "-f", "v.yaml", "-s", "a=b"],
            "pass the values either using set flag or values_file flag",
        ),
        (
            ["apply", "-", "-r", "-"],
            "a stdin pipe can be used for either policies or resources, not both",
        ),
        (
            ["apply", "latest.yaml", "-r", "good.yaml", "--json", "x.json"],
            "both resource and json files can not be used together, use one or the other",
        ),
        (
            ["apply", "latest.yaml", "-r", "good.yaml", "--crd-paths", "a", "--kubeconfig", "b"],
            "crd-paths and kubeconfig flags are mutually exclusive, please use only one of them",
        ),
        (["apply", "latest.yaml", "-c", "--kubeconfig", "none"], "kubeconfig `none` cannot be read"),
        (
            ["apply", "latest.yaml", "--cluster", "-n", "a", "--cluster-wide-resources", "--kubeconfig", "none"],
            "kubeconfig `none` cannot be read",
        ),
        (
            ["apply", "latest.yaml", "--http-payload", "a.json"],
            "failed to parse HTTP payload from a.json: `a.json` does not exist",
        ),
        (
            ["apply", "latest.yaml", "--envoy-payload", "good.yaml"],
            "failed to parse envoy payload from good.yaml: unknown field `apiVersion`",
        ),
        (["apply", "latest.yaml", "-r", "good.yaml", "--workers", "0"], "--workers must be at least 1, got 0"),
        (["apply", "latest.yaml", "-r", "good.yaml", "-s", "a"], "invalid variable `a`: expected key=value"),
        (["apply", "latest.yaml", "-r", "good.yaml", "-s", "a=b=c"], "invalid variable `a=b=c`: expected key=value"),
        (["apply", "latest.yaml", "--nonsense"], "unknown flag: --nonsense"),
        (["apply", "latest.yaml", "-Z"], "unknown shorthand flag: 'Z' in -Z"),
        (["apply", "latest.yaml", "-r"], "flag needs an argument: 'r' in -r"),
        (["apply", "latest.yaml", "-r", "good.yaml", "-v=x"], 'Failed to setup logging (invalid log level "x")'),
        (["apply", "latest.yaml", "-r", "good.yaml", "-p=x"], 'invalid argument "x" for "-p" flag'),
        (["apply", "latest.yaml", "-r", "good.yaml", "-f", "missing.yaml"], "cannot read `missing.yaml`"),
        (["apply", "latest.yaml", "-r", "good.yaml", "--crd-paths", "."], "CRD path `.` is a folder, expected a file"),
        (
            ["apply", "latest.yaml", "-r", "good.yaml", "--generated-exception-ttl", "soon"],
            "invalid argument for `--generated-exception-ttl`",
        ),
    ],
)
def test_wrong_arguments_end_with_1_and_one_line(cli: Run, arguments: list[str], message: str) -> None:
    """Nothing is on stdout, the reason is on stderr."""
    ran = cli(*arguments)
    assert (1, "") == (ran.code, ran.out)
    assert ran.err.startswith(f"Error: {message}"), ran.err


def test_policies_come_from_stdin(cli: Run) -> None:
    """`-` is standard input."""
    assert 1 == summary(cli("apply", "-", "-r", "good.yaml", stdin=LATEST).out)["pass"]


def test_resources_come_from_stdin(cli: Run) -> None:
    """The output of kustomize can be piped in."""
    ran = cli("apply", "latest.yaml", "-r", "-", stdin=f"{GOOD}---\n{BAD}")
    assert (1, {"pass": 1, "fail": 1}) == (ran.code, {key: summary(ran.out)[key] for key in ("pass", "fail")})


def test_a_folder_of_policies_may_hold_other_documents(cli: Run, folder: Path) -> None:
    """Manifests and tests beside the policies are left out; folders inside are read."""
    (folder / "p" / "cases").mkdir(parents=True)
    (folder / "p" / "latest.yaml").write_text(LATEST)
    (folder / "p" / "cases" / "pod.yaml").write_text(BAD)
    (folder / "p" / "cases" / "kyverno-test.yaml").write_text("apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\n")
    ran = cli("apply", "p", "-r", "good.yaml")
    assert (0, "") == (ran.code, ran.err)


def test_a_file_that_is_no_policy_is_an_error_and_the_others_are_judged(cli: Run) -> None:
    """One bad input never hides the others, and never ends with 0."""
    ran = cli("apply", "latest.yaml", "good.yaml", "-r", "good.yaml")
    assert (1, 1) == (ran.code, summary(ran.out)["pass"])
    assert "Error: good.yaml:2:7: " in ran.err


def test_malformed_files_are_errors_with_their_place(cli: Run, folder: Path) -> None:
    """Policies and resources that are not YAML are named with line and column."""
    (folder / "torn.yaml").write_text("a: [1\n")
    ran = cli("apply", "latest.yaml", "torn.yaml", "-r", "good.yaml", "-r", "torn.yaml", "-r", "missing.yaml")
    assert (1, 1) == (ran.code, summary(ran.out)["pass"])
    assert 2 == ran.err.count("Error: torn.yaml:")
    assert "Error: `missing.yaml` does not exist" in ran.err


def test_a_document_without_kind_is_an_error(cli: Run, folder: Path) -> None:
    """Lists of values and objects without a kind are not dropped silently."""
    (folder / "odd.yaml").write_text("- a\n---\nb: 1\n")
    ran = cli("apply", "latest.yaml", "-r", "odd.yaml,good.yaml")
    assert (1, 2) == (ran.code, ran.err.count("apiVersion and kind are missing"))


def test_lists_of_resources_are_expanded(cli: Run, folder: Path) -> None:
    """A v1 List counts as its items."""
    items = [yaml.safe_load(text) for text in (GOOD, BAD)]
    (folder / "list.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert "to 2 resource(s)" in cli("apply", "latest.yaml", "-r", "list.json").out


def test_globs_and_folders_name_resources(cli: Run, folder: Path) -> None:
    """A folder gives all files below it, with `--compat kyverno` its own only."""
    (folder / "m" / "deeper").mkdir(parents=True)
    (folder / "m" / "a.yaml").write_text(GOOD)
    (folder / "m" / "deeper" / "b.yaml").write_text(BAD)
    found = summary(cli("apply", "latest.yaml", "-r", "m").out)
    assert (1, 1) == (found["pass"], found["fail"])
    found = summary(cli("apply", "latest.yaml", "-r", "m", "--compat", "kyverno").out)
    assert (1, 0) == (found["pass"], found["fail"])
    assert 1 == summary(cli("apply", "latest.yaml", "-r", "m/*.yaml").out)["pass"]


def test_an_unknown_kind_is_an_error_with_its_place_and_the_others_are_judged(cli: Run, folder: Path) -> None:
    """It is never passed over."""
    (folder / "future.yaml").write_text((folder / "cel.yaml").read_text().replace("ValidatingPolicy", "FuturePolicy"))
    ran = cli("apply", "future.yaml", "latest.yaml", "-r", "good.yaml")
    assert (1, 1) == (ran.code, summary(ran.out)["pass"])
    assert ran.err.startswith(
        "Error: future.yaml:2:7: kind: `policies.kyverno.io/v1` kind `FuturePolicy` is not a policy"
    )


PARAMETERS = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: most}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations:
  - expression: object.spec.containers.size() <= int(params.data.most)
    messageExpression: "'at most ' + params.data.most"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: most, validationActions: [Deny], paramRef: {name: limits, parameterNotFoundAction: Deny}}
"""


def test_admission_policies_get_their_parameters_from_files(cli: Run, folder: Path) -> None:
    """Without them the binding cannot work, which is an error and no pass."""
    (folder / "vap.yaml").write_text(PARAMETERS)
    (folder / "limits.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits, namespace: shop}\ndata: {most: '0'}\n"
    )
    ran = cli("apply", "vap.yaml", "-r", "good.yaml", "--parameter-resource", "limits.yaml")
    assert (1, 1, True) == (ran.code, summary(ran.out)["fail"], "at most 0" in ran.out)
    missing = cli("apply", "vap.yaml", "-r", "good.yaml")
    assert (1, 1) == (missing.code, summary(missing.out)["error"])


PAYLOADS = """\
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: colours}
spec:
  evaluation: {mode: JSON}
  validations: [{expression: object.colour == 'red', message: not red}]
"""


def test_authorization_requests_are_judged_by_the_policies_of_their_mode(cli: Run, folder: Path) -> None:
    """A request that no policy of its mode answers is a skip; policies of other modes give no result."""
    head = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\n"
    get = "\"object.attributes.method == 'GET' ? http.Allowed().Response() : null\""
    (folder / "http.yaml").write_text(
        f"{head}metadata: {{name: reading}}\n"
        f"spec: {{evaluation: {{mode: HTTP}}, validations: [{{expression: {get}}}]}}\n"
    )
    (folder / "envoy.yaml").write_text(
        f"{head}metadata: {{name: closed}}\n"
        "spec: {evaluation: {mode: Envoy}, validations: [{expression: envoy.Denied(403).Response()}]}\n"
    )
    (folder / "get.json").write_text('{"attributes": {"method": "GET"}}')
    (folder / "put.json").write_text('{"attributes": {"method": "PUT"}}')
    (folder / "envoy.json").write_text('{"attributes": {"request": {"http": {"path": "/"}}}}')
    policies = ("http.yaml", "envoy.yaml", "latest.yaml")
    ran = cli("apply", *policies, "--http-payload", "get.json,put.json", "--envoy-payload", "envoy.json")
    assert {"pass": 1, "fail": 1, "warn": 0, "error": 0, "skip": 1} == summary(ran.out)
    assert (1, "") == (ran.code, ran.err)
    assert "envoy.json:1:1 closed/closed request denied with status code 403\n    Envoy/envoy.json, rule" in ran.out


@pytest.mark.parametrize(
    ("payload", "code", "said"), [('{"colour": "red"}', 0, ""), ('{"colour": "blue"}', 1, "not red")]
)
def test_json_payloads_are_judged_by_policies_made_for_them(
    cli: Run, folder: Path, payload: str, code: int, said: str
) -> None:
    """A payload of any shape is named after its file."""
    (folder / "colours.yaml").write_text(PAYLOADS)
    (folder / "p.json").write_text(payload)
    ran = cli("apply", "colours.yaml", "latest.yaml", "--json", "p.json")
    assert (code, True, bool(said)) == (ran.code, said in ran.out, "JSON/p.json" in ran.out)


_COMPAT = ["--compat", "kyverno"]


def test_an_invalid_policy_is_skipped_and_counts_as_an_error(cli: Run) -> None:
    """The reasons are on stderr with their place, and with `--compat kyverno` also in a listing."""
    ran = cli("apply", "invalid.yaml", "latest.yaml", "-r", "good.yaml", "--compat", "kyverno")
    assert (1, 1, 1) == (ran.code, summary(ran.out)["pass"], summary(ran.out)["error"])
    assert f"{'-' * 70}\nPolicies Skipped:\n1. broken: " in ran.out
    assert "Error: invalid.yaml:" in ran.err
    outputs = (cli("apply", "invalid.yaml", "latest.yaml", "-r", "good.yaml", *more).out for more in ([], _COMPAT))
    own, counted = (int(out.split("Applying ")[1].split()[0]) for out in outputs)
    assert counted > own


def test_a_document_that_is_no_policy_counts_as_an_error(cli: Run, folder: Path) -> None:
    """It has no name to list; the other policies are still evaluated."""
    (folder / "typo.yaml").write_text(LATEST.replace("rules:", "ruels:"))
    ran = cli("apply", "typo.yaml", "latest.yaml", "good.yaml", "-r", "good.yaml")
    assert (1, 1, 2) == (ran.code, summary(ran.out)["pass"], summary(ran.out)["error"])
    assert "Policies Skipped" not in ran.out
    assert ran.err.count("Error: ") >= 2


def test_warnings_about_policies_are_reported(cli: Run, folder: Path) -> None:
    """Warnings go to stderr with the policy's name and do not change the result."""
    (folder / "old.yaml").write_text(LATEST.replace("spec:\n", "spec:\n  validationFailureAction: enforce\n", 1))
    ran = cli("apply", "old.yaml", "-r", "good.yaml")
    assert (0, 1) == (ran.code, summary(ran.out)["pass"])
    assert ran.err.startswith("warning: policy no-latest: Validation failure actions enforce/audit are deprecated")


def test_audit_warn_counts_audit_failures_as_warnings(cli: Run) -> None:
    """Failures of Enforce rules stay failures."""
    ran = cli("apply", "audited.yaml", "-r", "bad.yaml", "--audit-warn", "--compat", "kyverno")
    assert (0, 1, 0) == (ran.code, summary(ran.out)["warn"], summary(ran.out)["fail"])
    assert "policy audited -> resource shop/Pod/bad failed as audit warning:" in ran.out
    assert 1 == cli("apply", "latest.yaml", "-r", "bad.yaml", "--audit-warn").code


def test_warn_exit_code_is_used_for_warnings(cli: Run) -> None:
    """The reason is printed without line end."""
    ran = cli("apply", "audited.yaml", "-r", "bad.yaml", "--audit-warn", "--warn-exit-code", "3")
    assert (3, True) == (ran.code, ran.out.endswith("exit as warnExitCode is 3"))


def test_warn_no_pass_uses_that_code_when_nothing_passed(cli: Run) -> None:
    """With the default code it ends with 0."""
    ran = cli("apply", "latest.yaml", "-r", "namespace.yaml", "--warn-no-pass", "--warn-exit-code", "4")
    assert (4, True) == (ran.code, ran.out.endswith("exit as no objects satisfied policy\n"))
    assert 0 == cli("apply", "latest.yaml", "-r", "namespace.yaml", "--warn-no-pass").code


def test_mutated_resources_are_printed(cli: Run) -> None:
    """With four blanks of indentation and sorted keys, as upstream."""
    ran = cli("apply", "label.yaml", "-r", "good.yaml", "--set", f"{TEAM}=shop")
    start = "\npolicy add-label applied to shop/Pod/good:\napiVersion: v1\nkind: Pod\nmetadata:\n    labels:\n"
    assert start + "        team: shop\n" in ran.out
    assert "\n---\n\n\nMutation:\nMutation has been applied successfully." in ran.out


def test_mutations_reach_the_rules_after_them(cli: Run, folder: Path) -> None:
    """Validation sees the changed object."""
    (folder / "tag.yaml").write_text(
        LABEL.replace("add-label", "fix-tag")
        .replace(CONTEXT, "")
        .replace(
            'metadata:\n          labels:\n            team: "{{ dictionary.data.team }}"',
            'spec:\n          containers:\n          - (name): "*"\n            image: nginx:1',
        )
    )
    ran = cli("apply", "tag.yaml", "latest.yaml", "-r", "bad.yaml")
    assert (0, 2) == (ran.code, summary(ran.out)["pass"])


def test_a_mutation_without_change_is_reported(cli: Run, folder: Path) -> None:
    """The policy is listed as skipped for the resource."""
    (folder / "done.yaml").write_text(GOOD.replace("  namespace:", "  labels: {team: none}\n  namespace:"))
    ran = cli("apply", "label.yaml", "-r", "done.yaml", "-s", f"{TEAM}=none", "--compat", "kyverno")
    assert "\nskipped mutate policy add-label -> resource shop/Pod/good\n" in ran.out


def test_stdin_flag_prints_only_what_kubectl_needs(cli: Run) -> None:
    """The summary goes to stderr, unchanged objects nowhere."""
    ran = cli(
        "apply", "label.yaml", "latest.yaml", "-r", "-", "--stdin", "-s", f"{TEAM}=a", stdin=f"{GOOD}---\n{NAMESPACE}"
    )
    objects = [each for each in yaml.safe_load_all(ran.out) if each]
    assert ["Pod"] == [each["kind"] for each in objects]
    assert "pass: 2" in ran.err


def test_generated_objects_are_printed(cli: Run) -> None:
    """With their own end line."""
    ran = cli("apply", "generate.yaml", "-r", "namespace.yaml")
    assert "\npolicy quota applied to /Namespace/shop:\n" in ran.out
    assert "\n\nGenerate:\nGeneration completed successfully." in ran.out


def test_output_folder_takes_objects_by_name(cli: Run, folder: Path) -> None:
    """Objects by their own name, changed or not, generated ones by their policy's; runs append."""
    for _ in range(2):
        cli("apply", "label.yaml", "generate.yaml", "-r", "good.yaml,namespace.yaml", "-o", "out", "-s", f"{TEAM}=a")
    written = {path.name: path.read_text() for path in (folder / "out").iterdir()}
    assert {"good-mutated.yaml", "quota-generated.yaml", "shop-mutated.yaml"} == set(written)
    assert 2 == written["good-mutated.yaml"].count("\n---\n\n")
    assert 0o600 == (folder / "out" / "good-mutated.yaml").stat().st_mode & 0o777


def test_a_renamed_object_is_written_under_the_name_that_it_had(cli: Run, folder: Path) -> None:
    """So that its file is found by the manifest."""
    patch = '[{"op": "replace", "path": "/metadata/name", "value": "other"}]'
    rule = {"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "mutate": {"patchesJson6902": patch}}
    policy = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}}
    (folder / "rename.yaml").write_text(yaml.safe_dump({**policy, "spec": {"rules": [rule]}}))
    cli("apply", "rename.yaml", "-r", "good.yaml", "-o", "out")
    written = {path.name: yaml.safe_load_all(path.read_text()) for path in (folder / "out").iterdir()}
    assert {"good-mutated.yaml": "other"} == {name: next(found)["metadata"]["name"] for name, found in written.items()}


@pytest.mark.parametrize(("output", "name"), [("out", "good-mutated.yaml"), ("all.yaml", "")])
def test_output_is_for_its_owner_and_never_behind_a_link(cli: Run, folder: Path, output: str, name: str) -> None:
    """Objects may be Secrets: a file that was open to others is closed, one that is a link is refused."""
    path = folder / output / name if name else folder / output
    path.parent.mkdir(exist_ok=True)
    path.touch()
    path.chmod(0o644)
    words = ("apply", "label.yaml", "-r", "good.yaml", "-o", output, "-s", f"{TEAM}=a")
    assert 0 == cli(*words).code
    assert 0o600 == path.stat().st_mode & 0o777
    path.rename(folder / "elsewhere")
    content = (folder / "elsewhere").read_text()
    path.symlink_to(folder / "elsewhere")
    assert "it is a symbolic link" in cli(*words).err
    assert content == (folder / "elsewhere").read_text()


def test_output_file_takes_everything_and_starts_empty(cli: Run, folder: Path) -> None:
    """A second run does not append."""
    for _ in range(2):
        cli("apply", "label.yaml", "-r", "good.yaml", "--output", "all.yaml", "-s", f"{TEAM}=a")
    assert 1 == len([each for each in yaml.safe_load_all((folder / "all.yaml").read_text()) if each])


def test_a_name_of_a_resource_never_leaves_the_output_folder(cli: Run, folder: Path) -> None:
    """A name with a slash becomes the name of a file."""
    (folder / "evil.yaml").write_text(pod("../evil"))
    ran = cli("apply", "label.yaml", "-r", "evil.yaml", "-o", "out", "-s", f"{TEAM}=a")
    assert 0 == ran.code
    assert not (folder / "evil-mutated.yaml").exists()
    [written] = (folder / "out").iterdir()
    assert written.name.startswith("_._evil-mutated-")


def test_policy_report_is_one_document_per_scope(cli: Run) -> None:
    """Results of cluster policies are merged, namespaced policies have a report each."""
    ran = cli("apply", "latest.yaml", "namespaced.yaml", "-r", "bad.yaml", "-p")
    merged, own = [each for each in yaml.safe_load_all(ran.out) if each]
    assert ("ClusterReport", "merged", 1) == (merged["kind"], merged["metadata"]["name"], merged["summary"]["fail"])
    assert ("PolicyReport", "shop") == (own["kind"], own["metadata"]["namespace"])
    result = merged["results"][0]
    assert ("no-latest", "tag", "fail", "high", "Images") == tuple(
        result[key] for key in ("policy", "rule", "result", "severity", "category")
    )
    assert [{"apiVersion": "v1", "kind": "Pod", "name": "bad", "namespace": "shop"}] == result["resources"]


def test_policy_report_in_json_is_one_line(cli: Run) -> None:
    """Machines can read it line by line."""
    ran = cli("apply", "latest.yaml", "-r", "bad.yaml", "--policy-report", "--output-format", "json")
    assert 1 == len(ran.out.splitlines())
    assert 1 == json.loads(ran.out)["summary"]["fail"]


def test_table_shows_every_result(cli: Run) -> None:
    """Messages are there with --detailed-results only; no colours in a pipe."""
    ran = cli("apply", "latest.yaml", "-r", "good.yaml,bad.yaml", "-t", "--remove-color")
    assert "│ ID │ POLICY    │ RULE │ RESOURCE      │ RESULT │ REASON │" in ran.out
    assert "│ 2  │ no-latest │ tag  │ shop/Pod/bad  │ Fail   │        │" in ran.out
    assert "MESSAGE" not in ran.out
    assert "pass: 1" not in ran.out
    assert "no latest" in cli("apply", "latest.yaml", "-r", "bad.yaml", "--table", "--detailed-results").out


def test_an_exception_turns_a_failure_into_a_skip(cli: Run) -> None:
    """The header counts them and the result is a skip."""
    for flag in ("-e", "--exception", "--exceptions"):
        ran = cli("apply", "latest.yaml", "-r", "bad.yaml", flag, "exception.yaml")
        assert (0, 1) == (ran.code, summary(ran.out)["skip"])
        assert "with 1 exception(s)..." in ran.out


def test_exceptions_are_taken_from_resources_and_policies_only_with_the_flag(cli: Run, folder: Path) -> None:
    """Otherwise they are ordinary documents."""
    (folder / "both.yaml").write_text(f"{LATEST}---\n{EXCEPTION}")
    assert 1 == cli("apply", "both.yaml", "-r", "bad.yaml").code
    assert 0 == cli("apply", "both.yaml", "-r", "bad.yaml", "--exceptions-within-policies").code
    assert 1 == cli("apply", "latest.yaml", "-r", "bad.yaml,exception.yaml").code
    for flag in ("--exceptions-with-resources", "--exceptions-within-resources"):
        assert 0 == cli("apply", "latest.yaml", "-r", "bad.yaml,exception.yaml", flag).code


def test_ignored_exception_files_are_reported(cli: Run) -> None:
    """Upstream ignores them without a word."""
    ran = cli("apply", "latest.yaml", "-r", "bad.yaml", "-e", "exception.yaml", "--exceptions-with-resources")
    assert (1, True) == (ran.code, "--exception are ignored" in ran.err)


def test_generate_exceptions_prints_exceptions_that_work(cli: Run, folder: Path) -> None:
    """Given back with `--exception`, they excuse the failure."""
    ran = cli("apply", "latest.yaml", "-r", "bad.yaml", "--generate-exceptions", "--generated-exception-ttl", "24h")
    exception = next(each for each in yaml.safe_load_all(ran.out) if each)
    assert "no-latest-tag-shop-bad" == exception["metadata"]["name"]
    assert {"cleanup.kyverno.io/ttl": "24h0m0s"} == exception["metadata"]["labels"]
    exception["metadata"]["namespace"] = "shop"
    (folder / "made.yaml").write_text(yaml.safe_dump(exception))
    assert 0 == cli("apply", "latest.yaml", "-r", "bad.yaml", "-e", "made.yaml").code


def test_values_file_supplies_variables(cli: Run, folder: Path) -> None:
    """By policy and resource, and for all of them."""
    (folder / "values.yaml").write_text(
        "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\nglobalValues: {dictionary.data.team: all}\n"
        "policies:\n- name: add-label\n  resources:\n  - name: good\n    values: {dictionary.data.team: mine}\n"
    )
    for flag in ("-f", "--values-file"):
        ran = cli("apply", "label.yaml", "-r", "good.yaml,bad.yaml", flag, "values.yaml")
        assert (1, 1) == (ran.out.count("team: mine"), ran.out.count("team: all"))


def test_set_takes_the_first_of_duplicates(cli: Run) -> None:
    """Repeated or parted by commas."""
    assert (
        "team: a\n"
        in cli("apply", "label.yaml", "-r", "good.yaml", "-s", f"{TEAM}=a,{TEAM}=b", "--set", f"{TEAM}=c").out
    )


def test_userinfo_sets_the_user_of_the_request(cli: Run, folder: Path) -> None:
    """A file without apiVersion and kind is read with a warning."""
    rule = LATEST.replace("          kinds: [Pod]\n", "          kinds: [Pod]\n        clusterRoles: [admin]\n")
    rule = rule.replace("spec:\n  rules", "spec:\n  background: false\n  rules")
    (folder / "admin.yaml").write_text(rule)
    (folder / "user.yaml").write_text("clusterRoles: [admin]\nuserInfo: {username: jo}\n")
    (folder / "other.yaml").write_text("apiVersion: cli.kyverno.io/v1alpha1\nkind: UserInfo\nclusterRoles: [viewer]\n")
    assert 0 == cli("apply", "admin.yaml", "-r", "bad.yaml", "-u", "other.yaml").code
    for flag in ("-u", "--userinfo"):
        ran = cli("apply", "admin.yaml", "-r", "bad.yaml", flag, "user.yaml")
        assert (1, True) == (ran.code, ran.err.startswith("warning: `user.yaml` uses a deprecated schema"))


def test_context_file_is_checked(cli: Run, folder: Path) -> None:
    """Unknown fields are errors."""
    (folder / "context.yaml").write_text("apiVersion: cli.kyverno.io/v1alpha1\nkind: Context\nspec: {resources: []}\n")
    assert 0 == cli("apply", "latest.yaml", "-r", "good.yaml", "--context-file", "context.yaml").code
    (folder / "context.yaml").write_text("apiVersion: cli.kyverno.io/v1alpha1\nkind: Context\nspec: {images: {}}\n")
    assert 1 == cli("apply", "latest.yaml", "-r", "good.yaml", "--context-file", "context.yaml").code


CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {kind: Fleet, plural: fleets, singular: fleet}
  versions: [{name: v1, served: true, storage: true}]
"""


def test_crds_give_the_scope_of_kinds(cli: Run, folder: Path) -> None:
    """An object of a cluster-scoped kind gets no namespace."""
    (folder / "crd.yaml").write_text(CRD)
    (folder / "fleet.yaml").write_text("apiVersion: example.org/v1\nkind: Fleet\nmetadata: {name: a}\n")
    (folder / "policy.yaml").write_text(LATEST.replace("[Pod]", "[Fleet]"))
    assert "default/Fleet/a" in cli("apply", "policy.yaml", "-r", "fleet.yaml").out
    for flag in ("--crd-paths", "--crd-path"):
        assert "\n    Fleet/a, rule at" in cli("apply", "policy.yaml", "-r", "fleet.yaml", flag, "crd.yaml").out


TARGETS = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: touch}
spec:
  rules:
  - name: touch
    match: {any: [{resources: {kinds: [Namespace]}}]}
    mutate:
      targets: [{apiVersion: v1, kind: ConfigMap, name: settings, namespace: shop}]
      patchStrategicMerge: {data: {touched: "yes"}}
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\ndata: {a: b}\n"


def test_targets_are_patched_and_printed(cli: Run, folder: Path) -> None:
    """Both names of the flag."""
    (folder / "touch.yaml").write_text(TARGETS)
    (folder / "target.yaml").write_text(CONFIG_MAP)
    for flag in ("--target-resource", "--target-resources"):
        ran = cli("apply", "touch.yaml", "-r", "namespace.yaml", flag, "target.yaml")
        assert "patched targets: \n\napiVersion: v1\ndata:\n    a: b\n    touched:" in ran.out


API_CALL = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: needs-map}
spec:
  rules:
  - name: map
    match: {any: [{resources: {kinds: [Pod]}}]}
    context:
    - name: maps
      apiCall: {urlPath: "/api/v1/namespaces/shop/configmaps", jmesPath: "items | length(@)"}
    validate:
      message: no map
      deny: {conditions: {all: [{key: "{{ maps }}", operator: Equals, value: 0}]}}
"""


def test_loaded_resources_are_a_small_cluster(cli: Run, folder: Path) -> None:
    """API calls see them."""
    (folder / "call.yaml").write_text(API_CALL)
    (folder / "map.yaml").write_text(CONFIG_MAP)
    assert 1 == cli("apply", "call.yaml", "-r", "good.yaml").code
    assert 0 == cli("apply", "call.yaml", "-r", "good.yaml,map.yaml").code


def test_global_context_entries_read_loaded_resources(cli: Run, folder: Path) -> None:
    """Their documents may be among the resources."""
    context = 'globalReference: {name: maps, jmesPath: "length(@)"}'
    (folder / "call.yaml").write_text(
        API_CALL.replace(
            'apiCall: {urlPath: "/api/v1/namespaces/shop/configmaps", jmesPath: "items | length(@)"}',
            context,
        )
    )
    (folder / "map.yaml").write_text(
        f"{CONFIG_MAP}---\napiVersion: kyverno.io/v2\nkind: GlobalContextEntry\nmetadata: {{name: maps}}\n"
        'spec: {kubernetesResource: {group: "", version: v1, resource: configmaps, namespace: shop}}\n'
    )
    ran = cli("apply", "call.yaml", "-r", "good.yaml,map.yaml")
    assert (0, "") == (ran.code, ran.err)


def test_errors_of_rules_are_reported_on_stderr(cli: Run, folder: Path) -> None:
    """Upstream only counts them; as text they are among the findings."""
    (folder / "call.yaml").write_text(API_CALL.replace("/api/v1/namespaces/shop/configmaps", "/apis/x.org/v1/things"))
    ran = cli("apply", "call.yaml", "-r", "good.yaml")
    assert (1, "", True) == (ran.code, ran.err, "needs-map/map error failed to" in ran.out)
    ran = cli("apply", "call.yaml", "-r", "good.yaml", "--compat", "kyverno")
    assert (1, 1) == (ran.code, summary(ran.out)["error"])
    assert "Error: policy needs-map rule map -> resource shop/Pod/good: " in ran.err


def test_cleanup_policies_report_what_they_would_delete(cli: Run) -> None:
    """A resource that does not match is a fail with `--compat kyverno` only."""
    ran = cli("apply", "cleanup.yaml", "-r", "good.yaml,bad.yaml")
    assert (0, 1, 0) == (ran.code, summary(ran.out)["pass"], summary(ran.out)["fail"])
    ran = cli("apply", "cleanup.yaml", "-r", "good.yaml,bad.yaml", "--compat", "kyverno")
    assert (1, 1, 1) == (ran.code, summary(ran.out)["pass"], summary(ran.out)["fail"])
    assert "1 - old-pods resource did not match" in ran.out


def test_a_policy_without_namespace_is_warned_about(cli: Run, folder: Path) -> None:
    """A namespaced policy counts as one of `default`."""
    (folder / "p.yaml").write_text(LATEST.replace("kind: ClusterPolicy", "kind: Policy"))
    ran = cli("apply", "p.yaml", "-r", "good.yaml")
    assert "warning: Policy `no-latest` has no namespace, it counts as one of `default`" == ran.err.splitlines()[0]


def test_a_trusted_root_needs_a_registry(cli: Run, folder: Path) -> None:
    """It would be without effect."""
    ran = cli("apply", "latest.yaml", "-r", "good.yaml", "--trust-root", "root.json")
    assert (True, 1) == ("--trust-root needs --registry" in ran.err, ran.code)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-v", "--logtostderr=false", "--log_dir", "x"],
        ["-v4", "--v=3", "--one_output"],
        ["--username", "u", "--password", "p", "--git-branch", "main", "--continue-on-error=false"],
        ["-i=false", "--audit-warn=true"],
    ],
)
def test_flags_of_other_modes_are_accepted(cli: Run, arguments: list[str]) -> None:
    """They act elsewhere only."""
    ran = cli("apply", "latest.yaml", "-r", "good.yaml", *arguments)
    assert (0, "") == (ran.code, ran.err)


@pytest.mark.parametrize(
    ("arguments", "flag", "other"),
    [
        (["-n", "shop"], "--namespace", "--cluster"),
        (["--context", "kind"], "--context", "--cluster"),
        (["--batch-size", "10"], "--batch-size", "--cluster"),
        (["--output-format", "json"], "--output-format", "--policy-report"),
        (["--detailed-results"], "--detailed-results", "--table"),
        (["--warn-no-pass"], "--warn-no-pass", "--warn-exit-code"),
        (["--username", "u"], "--username", "--password"),
    ],
)
def test_a_flag_that_needs_another_one_is_a_warning(cli: Run, arguments: list[str], flag: str, other: str) -> None:
    """Kyverno's command ignores it in silence, and so does the run that imitates it."""
    words = ("apply", "latest.yaml", "-r", "good.yaml", *arguments)
    assert (0, f"warning: {flag} has no effect without {other}\n") == ((ran := cli(*words)).code, ran.err)
    assert "" == cli(*words, "--compat", "kyverno").err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--warn-exit-code", "256"], "`--warn-exit-code`: must be from 0 to 255, got 256"),
        (["--max-results", "-1"], "`--max-results`: must be at least 0, got -1"),
        (["--format", "jsn"], "tap, markdown, csv, html: did you mean `json`?"),
        (["--fail-on", "HIGH"], "`HIGH` is not one of critical, high, medium, low, info: did you mean `high`?"),
    ],
)
def test_a_value_that_a_flag_cannot_have_is_an_error(cli: Run, arguments: list[str], error: str) -> None:
    """An exit code of 256 would be 0; no text shows the empty word of a flag that is not given."""
    ran = cli("apply", "latest.yaml", "-r", "bad.yaml", *arguments)
    assert (1, True) == (ran.code, ran.err.endswith(f"{error}\n"))


def test_continue_on_fail_continues_after_an_error_on_one_resource(cli: Run, folder: Path) -> None:
    """Without it the run ends there."""
    (folder / "values.yaml").write_text(
        "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\n"
        "policies:\n- name: no-latest\n  resources:\n  - name: bad\n    values: {request.operation: PATCH}\n"
    )
    arguments = ("apply", "latest.yaml", "-r", "bad.yaml,good.yaml", "-f", "values.yaml")
    message = 'failed to apply policies on resource bad (invalid request.operation value "PATCH"'
    ran = cli(*arguments)
    assert (1, True, False) == (ran.code, message in ran.err, "pass: 1" in ran.out)
    ran = cli(*arguments, "--continue-on-fail")
    assert (1, True, 1, 1) == (ran.code, message in ran.err, summary(ran.out)["pass"], summary(ran.out)["error"])


def test_workers_print_the_same(cli: Run, folder: Path) -> None:
    """Order and texts do not depend on the number of processes."""
    (folder / "many.yaml").write_text("---\n".join(pod(f"p{i}", f"a:{'latest' if i % 3 else '1'}") for i in range(150)))
    command = [
        sys.executable,
        "-m",
        "pyverno",
        "apply",
        "latest.yaml",
        "label.yaml",
        "-r",
        "many.yaml",
        "-s",
        f"{TEAM}=x",
    ]
    one = subprocess.run(command, capture_output=True, check=False)
    two = subprocess.run([*command, "--workers", "2"], capture_output=True, check=False)
    assert (one.returncode, one.stdout, b"") == (two.returncode, two.stdout, two.stderr)


def test_a_deeply_nested_resource_is_an_answer_not_a_crash(cli: Run, folder: Path) -> None:
    """Ten thousand levels."""
    deep = '{"a":' * 9000 + "null" + "}" * 9000
    (folder / "deep.json").write_text('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":' + deep + "}")
    ran = cli("apply", "latest.yaml", "-r", "deep.json,good.yaml")
    assert 1 == ran.code
    assert "Traceback" not in ran.err


def test_help_lists_the_flags(cli: Run) -> None:
    """-h and --help."""
    for flag in ("-h", "--help"):
        ran = cli("apply", flag)
        assert (0, True, False) == (ran.code, "--audit-warn" in ran.out, "--notaudit-warn" in ran.out)


def test_every_flag_of_upstream_exists() -> None:
    """The list of the reference."""
    names = {name for parameter in apply.params for name in parameter.opts}
    expected = [
        "-r",
        "--resource",
        "--resources",
        "--target-resource",
        "--target-resources",
        "--parameter-resource",
        "-c",
        "--cluster",
        "-n",
        "--namespace",
        "--cluster-wide-resources",
        "--kubeconfig",
        "--context",
        "--crd-paths",
        "--crd-path",
        "-f",
        "--values-file",
        "-s",
        "--set",
        "-u",
        "--userinfo",
        "--context-file",
        "-e",
        "--exception",
        "--exceptions",
        "--exceptions-with-resources",
        "--exceptions-within-resources",
        "--exceptions-within-policies",
        "--generate-exceptions",
        "--generated-exception-ttl",
        "-p",
        "--policy-report",
        "--output-format",
        "-t",
        "--table",
        "--detailed-results",
        "--audit-warn",
        "--warn-exit-code",
        "--warn-no-pass",
        "-i",
        "--stdin",
        "-o",
        "--output",
        "--registry",
        "-b",
        "--git-branch",
        "--username",
        "--password",
        "--http-payload",
        "--envoy-payload",
        "--json",
        "--continue-on-fail",
        "--concurrent",
        "--batch-size",
        "--continue-on-error",
        "--show-performance",
        "--remove-color",
    ]
    assert set() == set(expected) - names


def test_audited_copy_differs_in_its_action_only() -> None:
    """The two policies of these tests stay comparable."""
    assert AUDITED.replace("audited", "no-latest").replace("Audit", "Enforce") == LATEST


OWNED = """\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: owned
  annotations:
    pod-policies.kyverno.io/autogen-controllers: none
spec:
  rules:
  - name: refuse
    match:
      any:
      - resources:
          kinds: [Pod]
          annotations: {owner: platform}
    validate:
      failureAction: Enforce
      message: owned by {{ request.object.metadata.annotations.owner }}, {{ request.object.kind }}
      deny: {}
"""


def test_parts_of_the_object_that_stand_in_a_values_file_are_matched(cli: Run, folder: Path) -> None:
    """Kyverno: `request.object.…` changes what the rules see and are matched with, for the resource of that name."""
    (folder / "owned.yaml").write_text(OWNED)
    (folder / "values.yaml").write_text(
        "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\nmetadata: {name: v}\n"
        "policies:\n- name: owned\n  resources:\n  - name: good\n"
        "    values: {request.object.metadata.annotations.owner: platform}\n"
    )
    ran = cli("apply", "owned.yaml", "-r", "good.yaml,bad.yaml", "-f", "values.yaml")
    assert "owned/refuse owned by platform, Pod\n    shop/Pod/good" in ran.out
    assert {"pass": 0, "fail": 1, "warn": 0, "error": 0, "skip": 0} == summary(ran.out)


def test_a_kubernetes_policy_without_operations_matches_all_of_them(cli: Run, folder: Path) -> None:
    """The API server would refuse it; it must not be about nothing here."""
    (folder / "vap.yaml").write_text(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: anything}\n"
        "spec:\n  matchConstraints:\n    resourceRules:\n"
        "    - {apiGroups: [''], apiVersions: [v1], resources: [pods]}\n"
        "  validations:\n  - {expression: \"object.metadata.name != 'bad'\", message: bad name}\n"
    )
    ran = cli("apply", "vap.yaml", "-r", "good.yaml,bad.yaml", "-p", "--output-format", "json")
    results = json.loads(ran.out)["results"]
    assert {("good", "pass"), ("bad", "fail")} == {(each["resources"][0]["name"], each["result"]) for each in results}
