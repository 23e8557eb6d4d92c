"""The commonest mistakes of authors, with the words that a reader sees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.linting import cel_policy, policy, rule

if TYPE_CHECKING:
    from tests.support.commandline import Run

DENY = "validate: {message: m, deny: {}}"


def pattern(text: str) -> str:
    """Return a policy with a pattern."""
    return policy(rule(f"validate: {{message: m, pattern: {text}}}"))


MISTAKES = {
    "a template of Helm": (
        "metadata:\n  name: {{ .Values.name }}\n",
        "2:10: PV001 a mapping key must be a scalar: this is a template of Helm, render it first with `helm template`",
    ),
    "a variable without quotes": (
        "value: {{ request.namespace }}\n",
        "1:9: PV001 a mapping key must be a scalar: text that begins with `{{` needs quotes",
    ),
    "a tab": (
        "kind: ClusterPolicy\n\tspec: {}\n",
        "2:1: PV001 a tab cannot be used for indentation",
    ),
    "a list where a map is expected": (
        policy(rule(DENY, match="[{resources: {kinds: [Pod]}}]")),
        "8:12: PV002 spec.rules[0].match: expected an object, found a list: write it without `- ` or brackets",
    ),
    "a map where a list is expected": (
        policy(rule(DENY, match="{any: {resources: {kinds: [Pod]}}}")),
        "8:18: PV002 spec.rules[0].match.any: expected a list, found an object: write `- ` before its first field, and "
        "indent the others",
    ),
    "a name that YAML reads as a boolean": (
        policy(rule("context: [{name: n, variable: {value: 1}}]\n" + DENY)),
        "9:22: PV002 spec.rules[0].context[0].name: expected a string, found a boolean: write it in quotes",
    ),
    "a misspelt operation of a patch": (
        policy(rule("mutate: {patchesJson6902: '[{op: ad, path: /a, value: b}]'}")),
        "9:38: PV002 spec.rules[0].mutate.patchesJson6902: unexpected kind: ad: did you mean `add`?",
    ),
    "a misspelt operation of a request": (
        policy(rule("preconditions: {all: [{key: '{{request.operation}}', operator: Equals, value: UPDAT}]}\n" + DENY)),
        "9:83: PV002 spec.rules[0].preconditions.all[0].value: unknown value 'UPDAT' found under the 'value' field. "
        "Only the following values are allowed: [CREATE, UPDATE, DELETE, CONNECT]: did you mean `UPDATE`?",
    ),
    "a key of a signature that is none": (
        policy(
            rule(
                "verifyImages: [{imageReferences: ['*'], mutateDigest: false, attestors: [{entries: "
                "[{keys: {publicKeys: '-----BEGIN PUBLIC KEY-----'}}]}]}]"
            )
        ),
        "9:109: PV002 spec.rules[0].verifyImages[0].attestors[0].entries[0].keys.publicKeys: holds a broken PEM block",
    ),
    "a misspelt field of the policy": (
        policy(rule("valdiate: {message: m, deny: {}}")),
        "9:5: PV002 spec.rules[0].valdiate: unknown field `valdiate`: did you mean `validate`?",
    ),
    "a kind in lower case": (
        policy(rule(DENY, match="{any: [{resources: {kinds: [pod]}}]}")),
        "8:40: PV101 no API has the kind `pod`: did you mean `Pod`?",
    ),
    "a kind in place of a resource": (
        cel_policy("validations: [{expression: 'true'}]", resource="Deployment"),
        "7:80: PV102 no API has the resource `Deployment`: did you mean `deployments`?",
    ),
    "a misspelt field of a pattern": (
        pattern("{spec: {=(hostPid): false}}"),
        "9:45: PV104 Pod has no field `hostPid` here: did you mean `hostPID`?",
    ),
    "a misspelt field in a block of CEL": (
        cel_policy("validations:\n- expression: |\n    object.spec.replicas > 1 &&\n    object.spec.replica < 9"),
        "11:19: PV105 Deployment has no field `replica` here: did you mean `replicas`?",
    ),
    "a variable that is not closed": (
        pattern('{metadata: {name: "{{ request.namespace }"}}'),
        "9:56: PV201 `{{` is never closed by `}}`, so this is text and no variable",
    ),
    "an anchor of another spelling": (
        pattern("{spec: {(=hostPID): false}}"),
        "9:45: PV301 `(=hostPID)` is no anchor but the name of a field: did you mean `=(hostPID)`?",
    ),
    "an operator of another language": (
        policy(
            rule(
                'validate: {message: m, pattern: {spec: {replicas: "=>2"}}}', match="{any: [{resources: {kinds: [X]}}]}"
            )
        ),
        "9:56: PV302 `=>` is no operator and is taken literally: write `>=`",
    ),
    "a variable without braces": (
        policy(rule(f"preconditions: {{all: [{{key: request.operation, operator: Equals, value: CREATE}}]}}\n{DENY}")),
        "9:33: PV402 `request.operation` is a text and no variable: write `{{ request.operation }}`",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_one_message_at_its_place(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    """Once, with the line and column of what is wrong."""
    text, expected = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(text)
    assert f"p.yaml:{expected}\n" == cli("lint", "p.yaml", "-q").out


def test_an_expression_that_does_not_compile_points_at_its_character(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the file, once, although the copies for controllers are wrong, too."""
    monkeypatch.chdir(tmp_path)
    body = "validations:\n- expression: |\n    object.spec.hostPID == false &&\n      object.spec.hostIPC == foo(3)"
    Path("p.yaml").write_text(cel_policy(body, group="", resource="pods"))
    lines = cli("lint", "p.yaml", "-q").out.splitlines()
    assert ["p.yaml:11:35: PV002"] == [" ".join(line.split()[:2]) for line in lines if line.startswith("p.yaml")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("aply",), 'unknown command "aply" for "pyverno": did you mean `apply`?'),
        (("jp", "qury"), 'unknown command "qury" for "pyverno jp": did you mean `query`?'),
        (("apply", "p.yaml", "--resorce", "x"), "unknown flag: --resorce: did you mean `--resource`?"),
    ],
)
def test_a_misspelt_command_or_flag_has_a_suggestion(cli: Run, words: tuple[str, ...], message: str) -> None:
    """The nearest one, after Kyverno's words."""
    assert message in cli(*words).err
