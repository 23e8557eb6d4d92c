"""One request to the engine: user, operation and object.

Requests are made only by `from_admission_review`, `from_manifest` and `from_live`, so that all front doors make the
same requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from pyverno.errors import UsageError
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.resource import Resource
from pyverno.lang.runtime import DEFAULT_SETTINGS, EvaluationSettings
from pyverno.value import dataclass, field, replace

if TYPE_CHECKING:
    from pyverno.kube.admissionreview import AdmissionRequest

__all__ = ["DEFAULT_SETTINGS", "EvaluationSettings", "Operation", "Request", "User"]

SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"


class Operation(StrEnum):
    """The operation on the object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True)
class User:
    """The user of a request: name, groups, and the resolved roles (`ns:role` and cluster roles)."""

    username: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    cluster_roles: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is known of the user, as in a background scan."""
        return not (self.username or self.groups or self.uid or self.extra or self.roles or self.cluster_roles)

    @property
    def service_account(self) -> tuple[str, str]:
        """Return (namespace, name) of a service account, or two empty texts.

        >>> User("system:serviceaccount:ci:builder").service_account
        ('ci', 'builder')
        """
        if not self.username.startswith(SERVICE_ACCOUNT_PREFIX):
            return "", ""
        namespace, _, name = self.username.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
        return namespace, name

    @classmethod
    def from_json(cls, info: JSONObject) -> User:
        """Read a `userInfo`; its roles are not in there.

        >>> User.from_json({"username": "alice", "groups": ["devs"]}).groups
        ('devs',)
        """
        return cls(
            username=_read_text(info, "username"),
            groups=tuple([item for item in info.get("groups") or () if isinstance(item, str)]),
            uid=_read_text(info, "uid"),
            extra={key: tuple(values or ()) for key, values in _object(info, "extra").items()},
        )

    def with_roles(self, roles: tuple[str, ...], cluster_roles: tuple[str, ...]) -> User:
        """Return the same user with the roles that were resolved."""
        if not roles and not cluster_roles:
            return self
        # every admission request comes by here, and `replace` takes four times as long
        return User(self.username, self.groups, self.uid, self.extra, roles, cluster_roles)

    def to_json(self) -> JSONObject:
        """Return the `request.userInfo` object."""
        info: JSONObject = {"username": self.username}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info


NOBODY = User()


@dataclass(frozen=True, slots=True)
class Request:
    """An operation on an object, with everything the matching of rules looks at.

    `object` is None on DELETE, `old` is None on CREATE. `admission` is the rest of the AdmissionRequest (uid, options,
    requestKind ...) as `request.*` shows it. `namespace_labels` are those of the object's namespace (None = unknown).
    `is_background` marks a scan of a live object, `is_payload` a JSON document that is no Kubernetes object.
    `is_policy_event` marks an object that is evaluated because a policy changed: rules match it as one that is created,
    but `request.operation` is empty. `settings` are those at the time of the request.
    """

    operation: Operation
    object: JSON
    old: JSON
    gvk: GVK
    gvr: GVR | None = None
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    user: User = NOBODY
    namespace_labels: Mapping[str, str] | None = None
    namespace_object: JSON = None
    dry_run: bool = False
    is_background: bool = False
    is_payload: bool = False
    is_policy_event: bool = False
    admission: Mapping[str, JSON] = field(default_factory=dict)
    settings: EvaluationSettings = field(default=DEFAULT_SETTINGS, compare=False)

    @property
    def subject(self) -> JSON:
        """The object that rules are matched on: the new one, or the old one where there is no new one."""
        return self.old if self.object is None else self.object

    def with_object(self, value: JSON) -> Request:
        """Return the same question about a changed object."""
        return replace(self, object=value)

    def with_kind(self, gvk: GVK) -> Request:
        """Return the same question under the kind that its subresource belongs to."""
        return replace(self, gvk=gvk)

    def with_settings(self, settings: EvaluationSettings) -> Request:
        """Return the same question under settings other than the defaults."""
        return self if settings is self.settings else replace(self, settings=settings)

    @property
    def changes_replicas(self) -> bool:
        """Whether `spec.replicas` of the object is not what it was before this UPDATE."""
        return bool(_replicas(self.object) != _replicas(self.old))  # guard: twin: other fields are excused

    def about_old_object(self) -> tuple[Request, Request]:
        """Return the questions whether the object as it was before this UPDATE would be created, and left unchanged."""
        return replace(self, operation=Operation.CREATE, object=self.old, old=None), replace(self, object=self.old)

    def variables(self) -> JSONObject:
        """Return the value of the variable `request`."""
        value: JSONObject = {
            "uid": "",
            "kind": {"group": self.gvk.group, "version": self.gvk.version, "kind": self.gvk.kind},
            "name": self.name,
            "namespace": self.namespace,
            "operation": "" if self.is_policy_event else self.operation.value,
            "dryRun": self.dry_run,
        }
        if self.gvr is not None:
            value["resource"] = {"group": self.gvr.group, "version": self.gvr.version, "resource": self.gvr.resource}
        if self.subresource:
            value["subResource"] = self.subresource
        value.update(self.admission)
        value["object"] = self.object
        value["oldObject"] = self.old
        if not self.user.is_empty:
            value["userInfo"] = self.user.to_json()
            # Kyverno: a user without roles has no such field
            if self.user.roles:
                value["roles"] = list(self.user.roles)
            if self.user.cluster_roles:
                value["clusterRoles"] = list(self.user.cluster_roles)
        return value

    @classmethod
    def from_manifest(
        cls,
        manifest: JSONObject,
        *,
        operation: Operation | str = Operation.CREATE,
        old: JSON = None,
        user: User = NOBODY,
        namespace_labels: Mapping[str, str] | None = None,
        namespace_object: JSON = None,
        gvk: GVK | None = None,
        gvr: GVR | None = None,
        subresource: str = "",
    ) -> Request:
        """Ask about an object out of a file, as if it were being applied to a cluster.

        UPDATE without `old` takes the object as its own predecessor; DELETE turns the object into the old one. `gvk`
        is that of the parent where the object is a subresource (`Scale` of a Deployment).

        >>> Request.from_manifest({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}).operation.value
        'CREATE'
        """
        if not isinstance(manifest, dict):
            raise UsageError("a manifest must be an object")
        if not isinstance(operation, Operation):
            operation = _named_operation(operation)
        view = Resource(manifest)
        new: JSON = manifest
        if operation is Operation.DELETE:
            new, old = None, manifest if old is None else old
        elif operation is Operation.UPDATE and old is None:
            old = manifest
        return cls(
            operation=operation,
            object=new,
            old=old,
            gvk=view.gvk if gvk is None else gvk,
            gvr=gvr,
            subresource=subresource,
            name=view.name,
            namespace=view.namespace,
            user=user,
            namespace_labels=namespace_labels,
            namespace_object=namespace_object,
        )

    @classmethod
    def from_payload(cls, payload: JSONObject) -> Request:
        """Ask about a JSON document that is no Kubernetes object; only policies made for that judge it."""
        if not isinstance(payload, dict):
            raise UsageError("a JSON payload must be an object")
        return cls(operation=Operation.CREATE, object=payload, old=None, gvk=GVK("", "", ""), is_payload=True)

    @classmethod
    def from_live(
        cls,
        manifest: JSONObject,
        *,
        namespace_labels: Mapping[str, str] | None = None,
        namespace_object: JSON = None,
        gvk: GVK | None = None,
        gvr: GVR | None = None,
        settings: EvaluationSettings = DEFAULT_SETTINGS,
    ) -> Request:
        """Make the request for a live object, without a user; `gvk` is that of the object if it is known already."""
        # scans make one for each object: fewer names of arguments and no view of it are a third of the time
        metadata = _object(manifest, "metadata")
        return cls(
            Operation.CREATE,
            manifest,
            None,
            Resource(manifest).gvk if gvk is None else gvk,
            gvr,
            "",
            _read_text(metadata, "name"),
            _read_text(metadata, "namespace"),
            namespace_labels=namespace_labels,
            namespace_object=namespace_object,
            is_background=True,
            settings=settings,
        )

    @classmethod
    def from_policy_event(
        cls,
        manifest: JSONObject,
        *,
        namespace_labels: Mapping[str, str] | None = None,
        gvr: GVR | None = None,
    ) -> Request:
        """Return a request for an existing object after a policy change; it has neither operation nor user.

        >>> pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
        >>> Request.from_policy_event(pod).variables()["operation"]
        ''
        """
        found = cls.from_live(manifest, namespace_labels=namespace_labels, gvr=gvr)
        return replace(found, is_background=False, is_policy_event=True)

    def for_existing(
        self,
        manifest: JSONObject,
        *,
        gvr: GVR,
        subresource: str = "",
        namespace_labels: Mapping[str, str] | None = None,
    ) -> Request:
        """Return the same question about an existing object: same operation and user, nothing has changed of it."""
        view = Resource(manifest)
        return replace(
            self,
            object=manifest,
            old=manifest,
            gvk=view.gvk,
            gvr=gvr,
            subresource=subresource,
            name=view.name,
            namespace=view.namespace,
            namespace_labels=namespace_labels,
            namespace_object=None,
        )

    @classmethod
    def from_admission_review(
        cls,
        review: JSONObject | AdmissionRequest,
        *,
        roles: tuple[str, ...] = (),
        cluster_roles: tuple[str, ...] = (),
        namespace_labels: Mapping[str, str] | None = None,
        namespace_object: JSON = None,
        user: User | None = None,
        settings: EvaluationSettings = DEFAULT_SETTINGS,
    ) -> Request:
        """Return the request of an AdmissionReview (admission.k8s.io/v1), of a bare request, or of one that was read.

        The user comes from there and gets the given roles, unless `user` is given. Raises UsageError for a request
        with parts of a wrong type.
        """
        # imported here, because most runs of the command line read no reviews
        from pyverno.kube.admissionreview import AdmissionRequest, check_request, request_of

        if not isinstance(review, AdmissionRequest):
            check_request(request_of(review))
            review = AdmissionRequest("", "", request_of(review))
        body = review.request
        resource = _object(body, "resource")
        rest = {key: value for key, value in body.items() if key not in _OWN_FIELDS}
        return cls(
            operation=Operation(review.operation),
            object=body.get("object"),
            old=body.get("oldObject"),
            gvk=review.kind,
            gvr=GVR(_read_text(resource, "group"), _read_text(resource, "version"), _read_text(resource, "resource")),
            subresource=review.subresource,
            name=review.name,
            namespace=review.namespace,
            user=user or User.from_json(_object(body, "userInfo")).with_roles(roles, cluster_roles),
            namespace_labels=namespace_labels,
            namespace_object=namespace_object,
            dry_run=body.get("dryRun") is True,
            admission=rest,
            settings=settings,
        )


def _named_operation(name: str) -> Operation:
    try:
        return Operation(name)
    except ValueError:
        names = ", ".join(each.value for each in Operation)
        raise UsageError(f"unknown operation `{name}`, expected one of {names}") from None


_OWN_FIELDS = frozenset({"kind", "object", "oldObject", "operation", "userInfo", "dryRun", "namespace", "name"})


def _object(source: Mapping[str, JSON], key: str) -> JSONObject:
    value = source.get(key)
    return value if isinstance(value, dict) else {}


def _read_text(source: Mapping[str, JSON], key: str) -> str:
    value = source.get(key)
    return value if isinstance(value, str) else ""


def _replicas(document: JSON) -> JSON:
    spec = document.get("spec") if isinstance(document, dict) else None
    return spec.get("replicas") if isinstance(spec, dict) else None
