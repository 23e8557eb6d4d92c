"""Table `match_helpers`: kind selectors, label, annotation, name and subject tests, wildcard keys, paths, loading."""

from __future__ import annotations

from typing import Any

from pyverno.compiler import Compiled, compile_documents
from pyverno.compiler.rules.matching import lower_matcher
from pyverno.engine.match import Subject
from pyverno.engine.request import Request, User
from pyverno.errors import PyvernoError
from pyverno.kube.gvk import parse_kind_selector
from pyverno.kube.json import decode
from pyverno.kube.patch.jsonpatch import unescape_key
from pyverno.kube.resource import Resource
from pyverno.kube.selector import compile_selector
from pyverno.kube.wildcard import match as wildcard_match
from pyverno.kube.yaml.documents import expand_lists, load_documents
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.pattern.validate import compile_pattern
from pyverno.lang.runtime import Runtime
from pyverno.lang.template import parse_path, path_expression
from tests.conformance.outcome import Claim, NotRun
from tests.conformance.policies import written_policy
from tests.conformance.tables import webhook_helpers
from tests.conformance.tables.go_structs import as_json

_SUBJECT_KINDS = {"ServiceAccountKind": "ServiceAccount", "UserKind": "User", "GroupKind": "Group"}
_MATCHES_ALL = {"kinds": ["*"]}


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row: the part before the slash of `test` names the Go package, the rest the function."""
    area, _, test = row["test"].partition("/")
    check = _CHECKS.get((area, test)) or _CHECKS.get((area, ""))
    if check is None:
        raise NotRun("about a Go function that has no counterpart here")
    return check(row)


def _matches(block: dict[str, Any], resource: Any) -> bool:
    """Return whether a rule with this match block matches a resource."""
    policy = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "row"},
        "spec": {"rules": [{"name": "row", "match": {"any": [{"resources": block}]}, "validate": {"deny": {}}}]},
    }
    rule = written_policy(policy).spec.rules[0]
    matcher = lower_matcher(rule.match, rule.exclude, policy_namespace="")
    return matcher.mismatch(Request.from_manifest(resource), Resource(resource)) is None


def _pod(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def _annotations(row: dict[str, Any]) -> Claim:
    block = {**_MATCHES_ALL, "annotations": row["expected"] or {}}
    return Claim(row["want"], _matches(block, _pod(annotations=row["actual"] or {})))


def _labels(row: dict[str, Any]) -> Claim:
    selector = as_json(row["expected"]) or {}
    try:
        got = compile_selector(selector, wildcards=True)(row["actual"] or {})
    except PyvernoError:
        got = False
    return Claim(row["want"], got)


def _name(row: dict[str, Any]) -> Claim:
    return Claim(row["want"], wildcard_match(row["expected"], row["actual"]))


def _namespace(row: dict[str, Any]) -> Claim:
    patterns = row.get("namespaces") or row.get("patterns") or [row.get("pattern", "")]
    resource = (row.get("resource") or {}).get("Object") or _pod(namespace=row.get("namespace", ""))
    resource = {"apiVersion": "v1", **resource}
    expected = row["expected"] if "expected" in row else row["shouldMatch"]
    return Claim(expected, _matches({**_MATCHES_ALL, "namespaces": patterns}, resource))


def _subjects(row: dict[str, Any]) -> Claim:
    info = row["userInfo"]
    user = User(username=info.get("Username", ""), groups=tuple(info.get("Groups") or ()))
    subjects = [
        Subject(_SUBJECT_KINDS.get(each["Kind"], each["Kind"]), each.get("Name", ""), each.get("Namespace", ""))
        for each in row["ruleSubjects"] or ()
    ]
    return Claim(row["want"], any(subject.matches(user) for subject in subjects))


def _selector(row: dict[str, Any]) -> Claim:
    got = parse_kind_selector(row["input"])
    parts = {"group": got.group, "version": got.version, "kind": got.kind, "subresource": got.subresource}
    return Claim(row["want"], parts)


def _expansion(row: dict[str, Any]) -> Claim:
    try:
        compile_pattern(row["patternMap"]).match(row["resourceMap"])
    except (AttributeError, KeyError, TypeError):
        return Claim(row["shouldPanic"], True)
    return Claim(row["shouldPanic"], False)


def _path(row: dict[str, Any]) -> Claim:
    return Claim(row["want"], parse_path(row["rawPath"]))


def _appended_path(row: dict[str, Any]) -> Claim:
    return Claim(row["want"], [*row["p"], *parse_path(row["s"])])


def _pointer(row: dict[str, Any]) -> Claim:
    return Claim(row["want"], [unescape_key(step) for step in row["s"].split("/")])


def _expression(row: dict[str, Any]) -> Claim:
    return Claim(row["want"], path_expression(tuple(row["p"])))


def _loading(row: dict[str, Any]) -> Claim:
    if "bytes" not in row:
        raise NotRun("about a Go function that has no counterpart here")
    try:
        items = compile_documents(expand_lists(load_documents(row["bytes"], file="row"))).items
    except PyvernoError:
        return Claim(row["wantErr"], True)
    errors = [error for item in items for error in item.errors if item.written is None]
    if errors or row["wantErr"]:
        return Claim(row["wantErr"], [str(error) for error in errors] if not row["wantErr"] else bool(errors))
    # a row has one list for each family of kinds, each in the order of the documents
    wanted = [each for listed in row.values() if isinstance(listed, list) for each in listed]
    return Claim(sorted(wanted, key=_family), sorted(map(_read, items), key=_family))


def _read(item: Compiled) -> dict[str, str]:
    if item.policy is not None:
        return {"kind": item.policy.info.kind, "namespace": item.policy.info.namespace}
    assert item.written is not None
    return {"kind": item.written.kind, "namespace": item.written.namespace or ""}


def _family(read: dict[str, str]) -> str:
    """Return the list of Go's loader that a kind belongs to: all kinds of rules share one, every other has its own."""
    return "" if read["kind"] in ("ClusterPolicy", "Policy") else read["kind"]


def _list(row: dict[str, Any]) -> Claim:
    data = {"test_object": decode(row["rawData"])}
    return Claim(row["expected"], compile_expression(row["jmesPath"]).evaluate(data, Runtime()))


_CHECKS = {
    **webhook_helpers.CHECKS,
    ("annotations", "TestCheckAnnotations"): _annotations,
    ("labels", "TestCheckSelector"): _labels,
    ("name", "TestCheckName"): _name,
    ("match", "TestCheckNameSpace"): _namespace,
    ("match", "TestCheckNameSpace_MultiplePatterns"): _namespace,
    ("match", "TestCheckNameSpace_WildcardPatterns"): _namespace,
    ("subjects", "TestCheckSubjects"): _subjects,
    ("kind", "TestParseKindSelector"): _selector,
    ("wildcards", "TestExpandInMetadata_NilSafety"): _expansion,
    ("pointer", "TestParsePath"): _path,
    ("pointer", "TestPointer_AppendPath"): _appended_path,
    ("pointer", "TestParse"): _pointer,
    ("pointer", "TestPointer_JMESPath"): _expression,
    ("loadpolicy", "TestGetPolicy"): _loading,
    ("foreach", "Test_EvaluateList"): _list,
}
