"""Rows of table `match_helpers` about the webhook: settings of the ConfigMaps, and the roles of a user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyverno.controllers.state.roles import RoleIndex
from pyverno.engine.request import User
from pyverno.errors import PyvernoError
from pyverno.telemetry.metricsettings import read_buckets, read_exposures, read_namespaces
from pyverno.webhook.configuration import Configuration
from pyverno.webhook.filters import ResourceFilter, read_resource_filters, read_user_list
from tests.conformance.outcome import Claim
from tests.conformance.tables.go_structs import as_json

__all__ = ["CHECKS"]

_KINDS = {"ServiceAccountKind": "ServiceAccount", "UserKind": "User", "GroupKind": "Group"}


def _users(row: dict[str, Any]) -> Claim:
    got = read_user_list(row["in"])
    wanted = {"excludes": row.get("wantExclusions") or [], "includes": row.get("wantInclusions") or []}
    return Claim(wanted, {"excludes": got.excludes, "includes": got.includes})


def _filters(row: dict[str, Any]) -> Claim:
    wanted = [each.get("$items", ["", "", "", "", "", ""]) for each in row["want"]]
    return Claim(wanted, [_components(each) for each in read_resource_filters(row["in"])])


def _components(found: ResourceFilter) -> list[str]:
    kind = found.kind
    # Go's value of a filter without a kind has empty group and version too; both match nothing that is real
    place = ["", "", "", ""] if not kind.kind else [kind.group, kind.version, kind.kind, kind.subresource]
    return [*place, found.namespace, found.name]


def _namespaces(row: dict[str, Any]) -> Claim:
    wanted = row.get("want") or {}
    lists = {"include": wanted.get("IncludeNamespaces") or [], "exclude": wanted.get("ExcludeNamespaces") or []}

    def read() -> Any:
        got = read_namespaces(row["in"])
        return {"include": got.include, "exclude": got.exclude}

    return _read(read, lists, is_refused=bool(row.get("wantErr")))


def _texts(key: str, field: str) -> Callable[[dict[str, Any]], Claim]:
    def check(row: dict[str, Any]) -> Claim:
        got = Configuration.read({key: row["in"]})
        if row.get("wantErr"):
            return Claim(True, bool(got.problems))
        return Claim(row.get("want") or {}, [*got.problems] or getattr(got, field))

    return check


def _buckets(row: dict[str, Any]) -> Claim:
    wanted = [] if row["expected"] == "emptyBoundaries" else row["expected"]
    error = row["expectedError"]
    try:
        got: Any = read_buckets(row["input"])
    except PyvernoError as problem:
        return Claim(error["$error"] if error else wanted, problem.message)
    return Claim(error["$error"] if error else wanted, got)


def _exposures(row: dict[str, Any]) -> Claim:
    wanted = {
        name: {key: value for key, value in each.items() if key != "$type"} for name, each in row["expected"].items()
    }

    def read() -> Any:
        return {
            name: {
                "Enabled": each.enabled,
                "DisabledLabelDimensions": each.disabled_labels,
                "BucketBoundaries": each.buckets,
            }
            for name, each in read_exposures(row["input"]).items()
        }

    return _read(read, wanted, is_refused=row["expectedError"])


def _read(read: Callable[[], Any], wanted: Any, *, is_refused: bool) -> Claim:
    try:
        return Claim("an error" if is_refused else wanted, read())
    except PyvernoError as error:
        return Claim("an error" if is_refused else wanted, "an error" if is_refused else error.message)


def _user(row: dict[str, Any]) -> User:
    info = row["userInfo"]
    return User(username=info.get("Username", ""), groups=tuple(info.get("Groups") or ()))


def _roles(index: RoleIndex, row: dict[str, Any]) -> dict[str, Any]:
    roles, cluster_roles = index.roles_of(_user(row), row.get("requestNamespace", ""))
    return {"roles": roles, "clusterRoles": cluster_roles}


def _index(*listed: Any) -> RoleIndex:
    index = RoleIndex()
    for number, binding in enumerate(each for bindings in listed for each in bindings or ()):
        body = as_json(binding)
        # rows give several bindings one name, which no cluster has
        body["metadata"] = {**body.get("metadata", {}), "name": f"binding-{number}"}
        index.put(body)
    return index


def _bindings(row: dict[str, Any]) -> Claim:
    wanted = {"roles": row.get("wantRoles") or [], "clusterRoles": row.get("wantClusterRoles") or []}
    return Claim(wanted, _roles(_index(row.get("roleBindings"), row.get("clusterroleBindings")), row))


def _listed(row: dict[str, Any]) -> Claim:
    wanted = {"roles": row["want"].get("roles") or [], "clusterRoles": row["want"].get("clusterRoles") or []}
    return Claim(wanted, _roles(_index(row["rbLister"].get("ret"), row["crbLister"].get("ret")), row))


def _subjects(row: dict[str, Any]) -> Claim:
    subjects = [
        {"kind": _KINDS[each["Kind"]], "name": each.get("Name", ""), "namespace": each.get("Namespace", "")}
        for each in row["subjects"] or ()
    ]
    index = RoleIndex()
    metadata = {"name": "row", "namespace": row["namespace"]}
    index.put({"metadata": metadata, "roleRef": {"kind": "ClusterRole", "name": "row"}, "subjects": subjects})
    return Claim(row["want"], bool(index.roles_of(_user(row), row["namespace"])[1]))


CHECKS: Mapping[tuple[str, str], Callable[[dict[str, Any]], Claim]] = {
    ("types", "Test_parseExclusions"): _users,
    ("types", "Test_parseKinds"): _filters,
    ("types", "Test_parseIncludeExcludeNamespacesFromNamespacesConfig"): _namespaces,
    ("types", "Test_parseWebhookAnnotations"): _texts("webhookAnnotations", "webhook_annotations"),
    ("types", "Test_parseWebhookLabels"): _texts("webhookLabels", "webhook_labels"),
    ("types", "Test_parseBucketBoundariesConfig"): _buckets,
    ("types", "Test_parseMetricExposureConfig"): _exposures,
    ("roleRef", "Test_getRoleRefByRoleBindings"): _bindings,
    ("roleRef", "Test_getRoleRefByClusterRoleBindings"): _bindings,
    ("roleRef", "TestGetRoleRef"): _listed,
    ("roleRef", "Test_matchBindingSubjects"): _subjects,
}
