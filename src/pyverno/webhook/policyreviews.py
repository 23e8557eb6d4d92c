"""Validation of policies, exceptions and global context entries at admission: compiling is validating.

A policy that does not compile is rejected with the offending field; questionable settings produce warnings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyverno.compiler.compile import Compiled, compile_document
from pyverno.compiler.lints.lint import Diagnostic
from pyverno.compiler.lints.run import lint_documents
from pyverno.compiler.validation.lints import deprecation_warning, exception_warnings
from pyverno.engine.faults import fault_of
from pyverno.engine.request import User
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError, PolicyError, PyvernoError
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.kube.yaml.documents import Document
from pyverno.kube.yaml.fieldpath import path_text
from pyverno.policy.cel.policies import DeletingPolicy
from pyverno.policy.cleanup import CleanupPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.exception import PolicyException
from pyverno.policy.kinds import Family, find_kind
from pyverno.threads import in_thread
from pyverno.value import replace
from pyverno.webhook.authors import AUTHOR, has_new_author, is_forged, is_unrecorded, record_author
from pyverno.webhook.server import Special

__all__ = ["DocumentReviews", "ExceptionSettings"]

_DEPRECATED = (ClusterPolicy, CleanupPolicy, PolicyException)
_UNKNOWN = "what this policy needs of the cluster could not be checked"
_UNCHECKED = "the permissions of the policy's author cannot be checked at the moment; try again"
_UNRECORDED = (
    f"annotation `{AUTHOR}` of the policy is missing: the webhook that records authors did not see this request, as "
    "shortly after a start of pyverno; try again"
)
_CHANGED = f"annotation `{AUTHOR}` of the policy was changed by another webhook: it is written by pyverno"
_DISABLED = "PolicyException resources would not be processed until it is enabled."


Refusals = Callable[[ClusterPolicy], Awaitable[Sequence[str]]]
"""Returns reasons to reject a valid policy of the legacy kinds."""

Advice = Callable[[ClusterPolicy], Awaitable[Sequence[str]]]
"""Returns warnings about a valid policy of the legacy kinds that depend on the cluster."""

AuthorRefusals = Callable[[object, ResourceRef, User], Awaitable[Sequence[str]]]
"""Returns reasons to reject a namespaced policy for its author: permissions that the author lacks."""

MissingPermissions = Callable[[CleanupPolicy | DeletingPolicy], Awaitable[Sequence[str]]]
"""Returns the permissions that the cleanup controller lacks for a policy, as messages."""


@dataclass(frozen=True, slots=True)
class ExceptionSettings:
    """Whether exceptions are used, and the one namespace that they must live in (`*` = any, "" = none)."""

    enabled: bool = False
    namespace: str = ""


class DocumentReviews:
    """Reviews objects of Kyverno's own kinds; `kinds` returns the currently served kinds."""

    def __init__(
        self,
        kinds: Callable[[], KindTable],
        exceptions: ExceptionSettings,
        refusals: Refusals | None = None,
        *,
        advice: Advice | None = None,
        missing: MissingPermissions | None = None,
        rights: AuthorRefusals | None = None,
        http_in_namespaces: bool = False,
    ) -> None:
        """Take the inputs of warnings about missing kinds and ineffective exceptions.

        `refusals` returns further reasons to reject a valid policy, such as missing permissions; `advice` returns
        further warnings; `missing` returns the permissions that the cleanup controller lacks for a policy, and `rights`
        those that the author of a namespaced policy lacks. `http_in_namespaces` lets namespaced policies call services.
        """
        self._kinds = kinds
        self._exceptions = exceptions
        self._refusals = refusals
        self._advice = advice
        self._missing = missing
        self._rights = rights
        self._http_in_namespaces = http_in_namespaces

    def paths(self) -> Mapping[str, Special]:
        """Return the reviews by path."""
        return {
            "/policyvalidate": self.review,
            "/policymutate": self.record_author,
            "/exceptionvalidate": self.review,
            "/celexception/validate": self.review,
            "/globalcontextvalidate": self.review,
        }

    async def record_author(self, admission_request: AdmissionRequest) -> AdmissionResponse:
        """Record the author of a namespaced policy; everything else is stored as written."""
        return record_author(admission_request)

    async def review(self, admission_request: AdmissionRequest) -> AdmissionResponse:
        """Compile the object; reject an invalid one, and warn about questionable settings."""
        if admission_request.subresource or admission_request.object is None:
            return AdmissionResponse()
        compiled = await in_thread(self._compile, admission_request)
        warnings = tuple(dict.fromkeys(self._warnings(compiled)))
        if compiled.errors:
            message = _format_errors(compiled.errors)
            row = find_kind(admission_request.kind.group, admission_request.kind.kind)
            if row is not None and row.family is Family.CEL:
                # Kyverno: every error of a policy in CEL is a warning as well
                warnings = (*(line.partition("\n")[0] for line in _error_lines(compiled.errors)), *warnings)
            return AdmissionResponse(allowed=False, message=message, warnings=tuple(dict.fromkeys(warnings)))
        refusals = await self._author_refusals(admission_request, compiled)
        if refusals:  # guard: the author of a policy may do what it does
            return AdmissionResponse(allowed=False, message="\n".join(refusals), warnings=warnings)
        if self._refusals is not None and isinstance(compiled.written, ClusterPolicy):
            refusals = await self._refusals(compiled.written)
            if refusals:
                return AdmissionResponse(allowed=False, message="\n".join(refusals), warnings=warnings)
        if self._advice is not None and isinstance(compiled.written, ClusterPolicy):
            warnings = tuple(dict.fromkeys((*warnings, *await _advised(self._advice, compiled.written))))
        if self._missing is not None and isinstance(compiled.written, (CleanupPolicy, DeletingPolicy)):
            missing = tuple(await self._missing(compiled.written))
            # Kyverno: a deleting policy is stored, and leaves out what it may not delete
            if missing and isinstance(compiled.written, CleanupPolicy):
                return AdmissionResponse(allowed=False, message="\n".join(missing), warnings=warnings)
            warnings += missing
        return AdmissionResponse(warnings=warnings)

    async def _author_refusals(self, admission_request: AdmissionRequest, compiled: Compiled) -> Sequence[str]:
        """Return why the user of a request must not be the author of a policy; without an answer it is rejected."""
        if is_forged(admission_request):  # guard: no user names another author
            return (_UNRECORDED if is_unrecorded(admission_request) else _CHANGED,)
        if self._rights is None or not has_new_author(admission_request):
            return ()
        kind, info = admission_request.kind, admission_request.request.get("userInfo")
        api_version = f"{kind.group}/{kind.version}"
        policy = ResourceRef(api_version, kind.kind, admission_request.namespace, admission_request.name)
        author = User.from_json(info if isinstance(info, dict) else {})
        try:
            return await self._rights(compiled.written, policy, author)
        except (HostError, StatusError) as error:
            return (f"{_UNCHECKED}: {error.message}",)  # guard: a policy whose author cannot be checked is rejected

    def _compile(self, admission_request: AdmissionRequest) -> Compiled:
        old = None if admission_request.old_object is None else Document(admission_request.old_object, "")
        kinds = self._kinds()
        compiled = compile_document(
            Document(admission_request.object, ""),
            old=old,
            kinds=kinds,
            http_in_namespaces=self._http_in_namespaces,
        )
        # unknown kinds have a warning of Kyverno's own
        found = lint_documents([compiled], kinds=kinds, ignore=("PV101",))
        return replace(compiled, warnings=(*compiled.warnings, *(_format_lint(each) for each in found)))

    def _warnings(self, compiled: Compiled) -> Iterable[str]:
        written = compiled.written
        yield from compiled.warnings
        if isinstance(written, PolicyException):
            settings = self._exceptions
            yield from exception_warnings(written, enabled=settings.enabled, namespace=settings.namespace)
        elif written is not None and written.kind == "PolicyException" and not self._exceptions.enabled:
            yield _DISABLED
        if isinstance(written, _DEPRECATED):
            warning = deprecation_warning(written)
            if warning:
                yield warning


async def _advised(advice: Advice, policy: ClusterPolicy) -> Sequence[str]:
    """Return warnings that depend on the cluster; a policy is not refused because they cannot be had."""
    try:
        return await advice(policy)
    except PyvernoError as error:
        return (f"{_UNKNOWN}: {error.message}",)
    except Exception as error:
        return (f"{_UNKNOWN}: internal error ({fault_of(error).code})",)


def _format_lint(found: Diagnostic) -> str:
    return f"{found.code} {path_text(found.path)}: {found.message}"


def _format_errors(errors: Iterable[PolicyError]) -> str:
    """Return all errors as one text."""
    return "\n".join(_error_lines(errors))


def _error_lines(errors: Iterable[PolicyError]) -> Iterable[str]:
    """Return each error with its field; a stored object has no file and line."""
    return dict.fromkeys(f"{error.path}: {error.message}" if error.path else error.message for error in errors)
