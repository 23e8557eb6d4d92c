"""I4 for CEL: the text of an error never holds a value that came from data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.engine.actions.cel.mutate import CelMutation, laid_over
from pyverno.engine.result import Status
from pyverno.errors import HostError, PatchError, PyvernoError
from pyverno.kube.meter import UNMETERED
from pyverno.lang.cel import Environment, Library, types
from pyverno.lang.cel.declarations import Declaration, Overload
from pyverno.lang.cel.libraries.optionals import OPTIONALS
from pyverno.lang.cel.libraries.standard import STANDARD_LIBRARY
from pyverno.lang.cel.values import Optional
from pyverno.lang.runtime import Budget, Runtime
from tests.property.cel_functions import FixedHost, fitting, overloads
from tests.property.test_cel_totality import written
from tests.security.asking import CONFIG_MAP, ask, policy

CANARY = "c4nary"
_TEXTS = (
    CANARY, f"{CANARY}(", f"1.{CANARY}", f"{CANARY}/8", f"10.0.0.0/{CANARY}", f"fe80::1%{CANARY}", f"1.2.3-{CANARY}_",
    f"https://x/%{CANARY}", f"{{\"{CANARY}\": }}", f"{{a: 1, a: *{CANARY}", f"%{CANARY}", f"x {CANARY}:y@z",
    f"-----BEGIN CERTIFICATE-----\n{CANARY}\n-----END CERTIFICATE-----", f"{CANARY}.a.b", f"\\{CANARY}",
)  # fmt: skip
PLANTED: tuple[Any, ...] = (
    *_TEXTS, CANARY.encode(), [CANARY], {CANARY: CANARY}, [{"name": CANARY}], Optional(CANARY), [[CANARY], CANARY],
)  # fmt: skip
"""Texts that parse as nothing, at the place where a parser would quote them, and values that hold the canary."""

_NAMES = ("a", "b", "c", "d", "e")


class Telltale:
    """A world that answers every call with an error that contains the call's arguments."""

    def __getattr__(self, name: str) -> Any:
        def answer(*asked: Any, **more: Any) -> Any:
            told = getattr(asked[0], "attributes", asked) if asked else more
            raise HostError(f"{name} refused: {told}")

        return answer


def errors_of(environment: Environment, text: str, bindings: dict[str, Any]) -> list[str]:
    """Return the texts of the errors of an expression and of everything in it."""
    host: Any = Telltale()
    program = environment.compile(text)
    found = []
    try:
        program.evaluate(bindings, Runtime(FixedHost(), Budget(steps=100_000)), host=host)
    except PyvernoError as error:
        found += [error.message, str(error)]
    return found


def planted(name: str, overload: Overload) -> list[str]:
    """Return the errors that show the canary when it is in some position of a call."""
    text = written(name, overload)
    if text is None:
        return []
    declared = Library("own", (Declaration(name, (overload,), ""),))
    environment = Environment((STANDARD_LIBRARY, OPTIONALS, declared), dict.fromkeys(_NAMES, types.DYN))
    own = [fitting(param) for param in overload.signature.params]
    shown = []
    for place in range(len(own)):
        for value in PLANTED:
            values = dict(zip(_NAMES, (*own[:place], value, *own[place + 1 :]), strict=False))
            shown += [each for each in errors_of(environment, text, values) if CANARY in each]
    return shown


def test_no_function_shows_an_operand_that_is_data() -> None:
    """Every overload of every library, the canary in every position of the call."""
    shown = {f"{name}{overload.signature}": planted(name, overload) for name, overload in overloads()}
    assert {} == {name: texts[0] for name, texts in shown.items() if texts}
    assert len(shown) > 300


POLICY = environment_of_kind("MutatingPolicy").with_variables({"object": types.DYN, "variables": types.DYN})


@pytest.mark.parametrize(
    "text",
    [
        "object.map[object.secret]",
        "object.list[int(object.number)]",
        "{object.secret: 1, object.secret: 2}",
        "{?object.secret: object.secret}",
        "object.list.transformMapEntry(i, v, {object.secret: v})",
        "object.list.transformMap(i, v, i < 2, v)[object.secret]",
        "int(object.secret) > 1 || uint(object.secret) > 1u",
        "double(object.secret) > 1.0 || bool(object.secret)",
        "timestamp(object.secret) > timestamp(0)",
        "timestamp(0).getHours(object.secret)",
        "duration(object.secret) > duration('1h')",
        "object.secret.matches(object.secret + '(')",
        "object.secret.charAt(50)",
        "object.secret.substring(50)",
        "[object.secret, object.list].join()",
        "object.secret.format([1])",
        "object.secret + 1",
        "object.secret < 1",
        "-object.secret",
        "object.secret ? 1 : 2",
        "object.secret && true",
        "object.secret.all(x, x)",
        "object.list.all(x, x)",
        "JSONPatch{op: object.list, path: object.secret}",
        "dyn(object).secret.field",
        "variables.failing",
        "resource.Get('v1', 'configmaps', 'a', object.secret)",
        "http.Get('https://x/?token=' + object.secret)",
        "globalContext.Get(object.secret, object.secret)",
    ],
)
def test_no_expression_shows_data_in_its_error(text: str) -> None:
    """Errors of operators, keys, indexes, loops, variables and host calls name at most the type of a value."""
    bindings = {
        "object": {"secret": CANARY, "map": {"a": 1}, "list": [CANARY, CANARY], "number": "77007"},
        "variables": {"failing": {}},
    }
    messages = errors_of(POLICY, text, bindings)
    assert [] == [each for each in messages if CANARY in each or "77007" in each]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.missing", "no such key: missing"),
        ("object['missing']", "no such key: missing"),
        ("object['miss' + 'ing']", "no such key: missing"),
        ("ip('1.2.x').family()", 'IP Address "1.2.x" parse error during conversion from string'),
        ("image('A').tag()", "could not parse reference: A"),
        ("object.list[5]", "index out of bounds: 5"),
    ],
)
def test_what_the_policy_writes_is_shown_as_cel_go_shows_it(text: str, expected: str) -> None:
    """Field names, literals and values computed from literals alone are the author's own text."""
    (message, _) = errors_of(POLICY, text, {"object": {"list": [1]}})
    assert message.startswith(expected)


_SECRETS = ("Zq7SecretX9w", "日本Zq7SecretX9w語", "/metadata/Zq7SecretX9w/x", "Zq7SecretX9w" * 3000, "Zq7~1SecretX9w")
_PATCH_TYPES = {"jsonPatch": "JSONPatch", "applyConfiguration": "ApplyConfiguration"}
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
_PATCHES = (
    *(f"[JSONPatch{{op: '{op}', path: {path}, from: {path}, value: object.secret}}]" for op in _OPERATIONS
      for path in ("object.secret", "'/a/' + object.secret + '/x'", "'/data/' + jsonpatch.escapeKey(object.secret)")),
    "[JSONPatch{op: object.secret, path: '/data/a', value: object.secret}]",
    "[JSONPatch{op: 'add', path: '', value: object.secret}]",
)  # fmt: skip
_CONFIGURATIONS = (
    "Object{data: dyn(object.secret)}",
    "Object{metadata: Object.metadata{labels: dyn(object.secret)}}",
    "Object{metadata: Object.metadata{labels: dyn({object.secret: [object.secret, dyn({object.secret: 1})]})}}",
    "Object{metadata: Object.metadata{generation: dyn(object.secret)}}",
    "Object{metadata: Object.metadata{finalizers: dyn([object.secret, object.secret])}}",
    "Object{metadata: Object.metadata{ownerReferences: dyn([object.secret])}}",
    "Object{metadata: Object.metadata{ownerReferences: dyn([{'uid': object.secret}, {'uid': object.secret}])}}",
    "Object{immutable: dyn(object.number)}",
)


@pytest.mark.parametrize("kind", ["MutatingPolicy", "NamespacedMutatingPolicy", "MutatingAdmissionPolicy"])
@pytest.mark.parametrize("secret", _SECRETS, ids=["plain", "wide", "path", "long", "escaped"])
def test_no_patch_in_cel_shows_data_in_its_error(kind: str, secret: str) -> None:
    """Every operation of a JSON patch and every error of an apply configuration, the data in each place."""
    expressions = {
        **dict.fromkeys(_PATCHES, "jsonPatch"),
        **dict.fromkeys(_CONFIGURATIONS, "applyConfiguration"),
    }
    is_own = kind != "MutatingAdmissionPolicy"
    stored = {**CONFIG_MAP, "secret": secret, "number": 86753097}
    erred, shown = 0, []
    for expression, form in expressions.items():
        patch = {"patchType": _PATCH_TYPES[form], form: {"expression": expression}}
        constraints = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        document = {
            "apiVersion": "policies.kyverno.io/v1" if is_own else "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": "guard", **({"namespace": "team"} if kind.startswith("Namespaced") else {})},
            "spec": {"matchConstraints": {"resourceRules": [constraints]}, "mutations": [patch]},
        }
        if not is_own:
            document["spec"] |= {"reinvocationPolicy": "Never", "failurePolicy": "Fail"}
        review = ask(json.dumps(document), stored)
        erred += sum(result.status is Status.ERROR for result in review.results)
        said = repr(([result.message for result in review.results], review.decision.message))
        shown += [expression for text in ("Zq7", "SecretX", "日本", "8675309") if text in said]
    assert [] == shown
    assert erred >= 18


def test_a_patch_in_cel_shows_what_the_policy_writes() -> None:
    """The twin: literals of the expression, places in lists and the kind of mistake are the author's to see."""
    text = "[JSONPatch{op: 'remove', path: '/spec/items/' + string(3) + '/' + object.secret}]"
    environment = environment_of_kind("MutatingPolicy").with_variables({"object": types.DYN})
    mutation = CelMutation(environment.compile(text), is_json_patch=True)
    value = mutation.program.evaluate({"object": {"secret": "s3cret"}}, Runtime())
    with pytest.raises(PatchError, match=r"doc is missing path: \"/spec/items/3/\(6 characters\)\": missing value"):
        laid_over(mutation, value, {"spec": {}}, refuses_atomics=True, meter=UNMETERED)


@pytest.mark.parametrize("secret", _SECRETS, ids=["plain", "wide", "path", "long", "escaped"])
@pytest.mark.parametrize("kind", ["ImageValidatingPolicy", "NamespacedImageValidatingPolicy", "ClusterPolicy"])
def test_what_is_no_image_shows_only_its_place(kind: str, secret: str) -> None:
    """Expressions and extractors may read any field, and name as an image what is none."""
    stored = {**CONFIG_MAP, "apiVersion": "v1", "secret": secret, "json": json.dumps({secret: [secret]})}
    pinned = f"'nginx@sha256:{'0' * 64}'"  # an image without a digest would fail before the other one is an error
    expressions = ("[object.secret]", f"[{pinned}, object.secret + ' X']", "[string(object.secret) + ':::']")
    if kind == "ClusterPolicy":
        entries = (
            "{path: /secret}",
            "{path: /json, jmesPath: 'parse_json(@)'}",
            "{path: /secret, jmesPath: 'to_array(@)'}",
        )
        signer = "{keyless: {issuer: a, subject: b, rekor: {url: 'https://a.example'}}}"
        texts = [
            policy(
                f"imageExtractors:\n  ConfigMap: [{entry}]\nverifyImages:\n- imageReferences: ['*']\n"
                f"  mutateDigest: false\n  failureAction: Enforce\n  attestors: [{{entries: [{signer}]}}]"
            )
            for entry in entries
        ]
    else:
        constraints = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        document = {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": kind,
            "metadata": {"name": "guard", **({"namespace": "team"} if kind.startswith("Namespaced") else {})},
        }
        spec = {
            "matchConstraints": {"resourceRules": [constraints]},
            "validationActions": ["Deny"],
            "attestors": [{"name": "a", "cosign": {"key": {"data": "x"}}}],
            "validations": [{"expression": "true"}],
        }
        images = [[{"name": "found", "expression": expression}] for expression in expressions]
        texts = [json.dumps({**document, "spec": {**spec, "images": each}}) for each in images]
    for text in texts:
        review = ask(text, stored)
        said = repr(([result.message for result in review.results], review.decision.message))
        assert Status.ERROR in {result.status for result in review.results}  # others may fail beside it
        assert [] == [each for each in ("Zq7", "SecretX", "日本") if each in said]
        assert "`images.found[" in said or "`/" in said or "must produce a string" in said
