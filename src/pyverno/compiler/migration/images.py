"""verifyImages rules as ImageValidatingPolicies: an attestor for each key or identity, a validation for each set.

An entry becomes a policy, as it has its own images and switches. Nested sets, annotations of signatures and conditions
over attestations have no form that certainly decides alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pyverno.compiler.migration.conditions import conditions
from pyverno.compiler.migration.expressions import names_of
from pyverno.compiler.migration.frame import frame_of, policy_head
from pyverno.compiler.migration.mutations.policy import settings_of
from pyverno.compiler.migration.outcome import Converted, Note, UnconvertibleError
from pyverno.compiler.migration.patterns.wildcards import regex_of
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.scope import ADMITTED
from pyverno.compiler.migration.text import Reference
from pyverno.errors import PyvernoError
from pyverno.images.verification.keys import KMS_SCHEMES, pem_blocks
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.wildcard import has_wildcard
from pyverno.lang.template.syntax import has_variables
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.failureaction import FailureAction
from pyverno.policy.rule import Rule, VerifyImages
from pyverno.policy.verifyimages import ImageVerification, VerificationType

__all__ = ["convert_images"]

_IMAGES: Final = (
    "(images.containers + images.initContainers + images.ephemeralContainers + images.?imageVolumes.orValue([]))"
)
"""All images of an object; Kyverno 1.19 has no group of image volumes."""
_SWITCHES: Final = ("mutateDigest", "verifyDigest", "required")
_HANDLED: Final = frozenset(
    {
        "type",
        "failureAction",
        "imageReferences",
        "attestors",
        "attestations",
        "repository",
        "imageRegistryCredentials",
        "useCache",
        *_SWITCHES,
    }
)
_BY_HAND: Final = "keep the rule, or write an ImageValidatingPolicy by hand"
_BUNDLES: Final = "an ImageValidatingPolicy also counts signatures in Sigstore bundles, which the rule does not read"


def convert_images(policy: ClusterPolicy, rule: Rule, book: SchemaBook, name: str) -> Converted:
    """Return an ImageValidatingPolicy for each entry of a rule; raises UnconvertibleError."""
    action = rule.action
    if not isinstance(action, VerifyImages):
        raise TypeError(type(action).__name__)
    for field in ("context", "imageExtractors"):
        if rule.raw.get(field):
            raise _refused("image-context", field, f"`{field}` has no form that certainly decides alike")
    spec = _frame(policy, rule, book)
    documents = []
    for index, entry in enumerate(action.entries):
        path = f"verifyImages[{index}]"
        found = _Entry(rule.raw["verifyImages"][index], entry, path).spec()
        own = f"{name}-{index + 1}" if len(action.entries) > 1 else name
        actions = {"validationActions": _actions(policy, entry)}
        documents.append({**policy_head(policy, "ImageValidatingPolicy", own), "spec": {**actions, **spec, **found}})
    notes = []
    if any(entry.type is VerificationType.COSIGN for entry in action.entries):
        notes.append(Note("image-bundles", "verifyImages", _BUNDLES))
    return Converted(tuple(documents), tuple(notes))


def _refused(code: str, path: str, reason: str) -> UnconvertibleError:
    return UnconvertibleError(code, path, reason, _BY_HAND)


def _frame(policy: ClusterPolicy, rule: Rule, book: SchemaBook) -> JSONObject:
    """Return the settings and the scope."""
    frame = frame_of(policy, rule, book, operations=ADMITTED, allowed=ADMITTED)
    root = frame.roots[0][1]
    names = names_of(root, Reference("oldObject", root.root_schema), book=book)
    test = conditions(rule.raw.get("preconditions"), names, "preconditions")
    if "variables." in test.text:
        raise _refused("image-context", "preconditions", "the preconditions differ by the kind of the object")
    match = [{"name": each.name, "expression": each.expression.text} for each in frame.scope.conditions]
    if test.text != "true":
        match.append({"name": "preconditions", "expression": test.text})
    spec = settings_of(policy, rule)
    if frame.scope.reads_users or not policy.spec.background:
        spec["evaluation"] = {**spec.get("evaluation", {}), "background": {"enabled": False}}
    spec["matchConstraints"] = frame.scope.constraints
    if match:
        spec["matchConditions"] = match
    return spec


def _actions(policy: ClusterPolicy, entry: ImageVerification) -> list[str]:
    if policy.spec.failure_action_overrides:
        raise _refused("image-overrides", "spec.validationFailureActionOverrides", "the action differs by namespace")
    action = entry.failure_action or policy.spec.failure_action
    return ["Deny"] if action is FailureAction.ENFORCE else ["Audit"]


class _Entry:
    """One entry; `attestors` are named in the order in which they are met."""

    def __init__(self, raw: JSONObject, written: ImageVerification, path: str) -> None:
        self.raw, self.written, self.path = raw, written, path
        self.attestors: list[JSONObject] = []

    def spec(self) -> JSONObject:
        """Return the part of the spec that the entry becomes."""
        raw = self.raw
        unknown = sorted(set(raw) - _HANDLED)
        if unknown:
            raise _refused("image-field", f"{self.path}.{unknown[0]}", f"`{unknown[0]}` has no counterpart")
        for index, each in enumerate(raw.get("attestations") or ()):
            if each.get("conditions"):
                place = f"{self.path}.attestations[{index}].conditions"
                raise _refused("attestation-conditions", place, "conditions read the statement as JMESPath does")
        if has_variables(raw):
            raise _refused("image-variables", self.path, "variables are filled in when the request is known")
        if self.written.type is VerificationType.SIGSTORE_BUNDLE:
            reason = "the rule reads bundles only, an ImageValidatingPolicy signatures as well"
            raise _refused("sigstore-bundle", f"{self.path}.type", reason)
        sets = self._sets(raw.get("attestors"), "attestors")
        checks = [_count_test("verifyImageSignatures(image, {})", *each) for each in sets]
        attestations: list[JSONObject] = []
        for index, each in enumerate(raw.get("attestations") or ()):
            path = f"attestations[{index}]"
            checks += self._attestation(each, path, attestations)
        if not checks:
            raise _refused("no-attestors", self.path, "the entry verifies no signature")
        found: JSONObject = {"matchImageReferences": [{"glob": each} for each in raw.get("imageReferences") or ()]}
        switches = {name: False for name in _SWITCHES if raw.get(name) is False}
        if switches:
            found["validationConfigurations"] = switches
        if raw.get("imageRegistryCredentials"):
            found["credentials"] = raw["imageRegistryCredentials"]
        found["attestors"] = self.attestors
        if attestations:
            found["attestations"] = attestations
        message = "the image must be signed as the policy demands"
        found["validations"] = [{"expression": f"{_IMAGES}.all(image, {each})", "message": message} for each in checks]
        return found

    def _attestation(self, written: JSONObject, path: str, found: list[JSONObject]) -> Iterator[str]:
        type_ = written.get("type") or written.get("predicateType")
        if not type_ or not written.get("attestors"):
            raise _refused("attestation", f"{self.path}.{path}", "a type and attestors are needed")
        name = f"statement{len(found) + 1}"
        form = "referrer" if self.written.type is VerificationType.NOTARY else "intoto"
        found.append({"name": name, form: {"type": type_}})
        for each in self._sets(written["attestors"], f"{path}.attestors"):
            yield _count_test(f"verifyAttestationSignatures(image, attestations.{name}, {{}})", *each)

    def _sets(self, sets: JSON, path: str) -> Iterator[tuple[Sequence[str], int]]:
        """Yield the names of the attestors of each set, and how many must agree."""
        for index, each in enumerate(sets or ()):
            names = []
            for number, entry in enumerate(each.get("entries") or ()):
                place = f"{self.path}.{path}[{index}].entries[{number}]"
                for attestor in self._attestor(entry, place):
                    name = f"signer{len(self.attestors) + 1}"
                    self.attestors.append({"name": name, **attestor})
                    names.append(name)
            yield names, each.get("count") or len(names)

    def _attestor(self, entry: JSONObject, path: str) -> Iterator[JSONObject]:
        if entry.get("attestor"):
            raise _refused("nested-attestors", f"{path}.attestor", "sets within sets have no counterpart")
        if entry.get("annotations"):
            reason = "an ImageValidatingPolicy compares other annotations than the rule"
            raise _refused("signature-annotations", f"{path}.annotations", reason)
        way = next((name for name in ("keys", "keyless", "certificates") if entry.get(name)), "")
        body: JSONObject = entry.get(way) or {}
        if self.written.type is VerificationType.NOTARY:
            yield self._notary(way, body, path)
            return
        common = _logs(body)
        repository = entry.get("repository") or self.raw.get("repository")
        if repository:
            common["source"] = {"repository": repository}
        algorithm = body.get("signatureAlgorithm") or entry.get("signatureAlgorithm")
        match way:
            case "keys":
                for key in _keys(body, f"{path}.keys"):
                    hashed = {"hashAlgorithm": algorithm} if algorithm and algorithm != "sha256" else {}
                    yield {"cosign": {"key": {**key, **hashed}, **common}}
            case "keyless":
                yield {"cosign": {"keyless": _keyless(body, f"{path}.keyless"), **common}}
            case "certificates":
                names = ("cert", "certChain")
                given = {name: {"value": body[name]} for name in names if body.get(name)}
                yield {"cosign": {"certificate": given, **common}}
            case _:
                raise _refused("attestor", path, "the entry names no keys, identities or certificates")

    def _notary(self, way: str, body: JSONObject, path: str) -> JSONObject:
        if way != "certificates":
            raise _refused("attestor", path, "Notary knows certificates only")
        store = "\n".join(str(body[name]).strip() for name in ("cert", "certChain") if body.get(name))
        return {"notary": {"certs": {"value": store + "\n"}}}


def _count_test(call: str, names: Sequence[str], count: int) -> str:
    attestors = ", ".join(f"attestors.{each}" for each in names)
    return f"{call.format(f'[{attestors}]')} {'> 0' if count == 1 else f'>= {count}'}"


def _keys(body: JSONObject, path: str) -> Iterator[JSONObject]:
    """Yield the keys of an entry: each PEM block counts as one."""
    text = str(body.get("publicKeys") or body.get("kms") or "").strip()
    if text.startswith(KMS_SCHEMES):
        yield {"kms": text}
        return
    if not text.startswith("-----BEGIN"):
        raise _refused("key-reference", path, "the key is an object of the cluster: write it as PEM")
    try:
        blocks = pem_blocks(text, path)
    except PyvernoError as error:
        raise _refused("key-reference", path, error.message) from error
    for _, block in blocks:
        yield {"data": block.strip() + "\n"}


def _keyless(body: JSONObject, path: str) -> JSONObject:
    identity: JSONObject = {}
    for name in ("issuer", "subject"):
        text, pattern = body.get(name), body.get(f"{name}RegExp")
        if text and pattern:
            reason = f"both {name} and {name}RegExp must fit, of which an ImageValidatingPolicy takes one"
            raise _refused("keyless-identity", f"{path}.{name}", reason)
        if text and has_wildcard(text):
            identity[f"{name}RegExp"] = regex_of(text)
        elif text:
            identity[name] = text
        elif pattern:
            identity[f"{name}RegExp"] = pattern
    found: JSONObject = {"identities": [identity] if identity else []}
    if body.get("roots"):
        found["roots"] = body["roots"]
    if any(has_wildcard(str(each)) for each in (body.get("additionalExtensions") or {}).values()):
        reason = "an ImageValidatingPolicy compares extensions to the letter"
        raise _refused("keyless-identity", f"{path}.additionalExtensions", reason)
    if body.get("additionalExtensions"):
        found["additionalExtensions"] = body["additionalExtensions"]
    return found


_LOG_FIELDS: Final[Mapping[tuple[str, str], str]] = {
    ("rekor", "url"): "url",
    ("rekor", "pubkey"): "rekorPubKey",
    ("rekor", "ignoreTlog"): "insecureIgnoreTlog",
    ("ctlog", "pubkey"): "ctLogPubKey",
    ("ctlog", "ignoreSCT"): "insecureIgnoreSCT",
    ("ctlog", "tsaCertChain"): "tsaCertChain",
}


def _logs(body: JSONObject) -> JSONObject:
    """Return the logs that an authority names, in the words of an attestor."""
    found = {word: value for (part, name), word in _LOG_FIELDS.items() if (value := (body.get(part) or {}).get(name))}
    return {"ctlog": found} if found else {}
