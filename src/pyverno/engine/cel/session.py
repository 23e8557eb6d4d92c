"""The session of a policy's CEL expressions: bindings, lazy variables, budgets.

One `CelSession` serves one evaluation of a policy on a request: variables are computed on first use, once, in it.
Errors are typed; the action decides what they mean for the request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from weakref import ref

from pyverno.engine.cel.brokerhost import BrokerHost
from pyverno.engine.cel.constraints import resource_of
from pyverno.engine.request import Request
from pyverno.engine.rule import Run
from pyverno.engine.scope import VariableFaultError
from pyverno.errors import BudgetExceededError, EvaluationError, PyvernoError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.lang.cel import CostMeter, Program
from pyverno.lang.cel.libraries.authorizer import Authorizer, ResourceCheck
from pyverno.lang.cel.values import Value
from pyverno.value import dataclass

__all__ = [
    "CelCondition",
    "CelSession",
    "CelVariable",
    "Unmet",
    "authorizer_bindings",
    "first_unmet",
    "has_run_out",
    "request_bindings",
    "request_value",
]

POLICY_COST = 10_000_000
CONDITIONS_COST = 2_500_000


@dataclass(frozen=True, slots=True)
class CelVariable:
    """A named expression whose value later ones may read as `variables.NAME`."""

    name: str
    program: Program


@dataclass(frozen=True, slots=True)
class CelCondition:
    """A named expression that must be true."""

    name: str
    program: Program


class _Variables(dict[str, Value]):
    """The value of `variables`: each is computed on first use; an error is kept and raised again.

    The session holds its variables, and they refer to it weakly: a cycle would keep the objects of a request until the
    next garbage collection.
    """

    __slots__ = ("_failures", "_programs", "_session")

    def __init__(self, session: CelSession, variables: Sequence[CelVariable]) -> None:
        super().__init__()
        self._session = ref(session)
        self._programs = {variable.name: variable.program for variable in variables}
        self._failures: dict[str, PyvernoError] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._programs

    def __iter__(self) -> Iterator[str]:
        return iter(self._programs)

    def __len__(self) -> int:
        return len(self._programs)

    def __missing__(self, name: str) -> Value:
        if name in self._failures:
            raise self._failures[name].copied()
        if name not in self._programs:
            raise KeyError(name)
        session = self._session()
        if session is None:
            raise VariableFaultError from ReferenceError("the session of these variables is gone")
        try:
            value = session.evaluate(self._programs[name])
        except BudgetExceededError:
            raise
        except PyvernoError as error:
            self._failures[name] = error.copied()
            if session.names_variables:
                self._failures[name] = EvaluationError(
                    f'composited variable "{name}" fails to evaluate: {error.message}'
                )
            raise self._failures[name].copied() from error
        except (VariableFaultError, RecursionError, MemoryError):
            raise
        except Exception as error:
            raise VariableFaultError from error
        self[name] = value
        return value


class CelSession:
    """Bindings, world and cost of one evaluation.

    Sessions with other bindings (`with_bindings`) compute their variables anew but draw on the same budget; match
    conditions have a budget of their own (`for_conditions`). `names_variables`: the error of a variable names the
    variable, as in the API server's policies and not in Kyverno's.
    """

    __slots__ = ("__weakref__", "_variables", "bindings", "host", "meter", "names_variables", "run")

    def __init__(
        self,
        run: Run,
        bindings: Mapping[str, Value],
        variables: Sequence[CelVariable] = (),
        *,
        host: BrokerHost | None = None,
        meter: CostMeter | None = None,
        names_variables: bool = False,
    ) -> None:
        self.run = run
        self.names_variables = names_variables
        self.host = host if host is not None else BrokerHost(run.broker)
        self.meter = meter if meter is not None else CostMeter(limit=POLICY_COST)
        self._variables = tuple(variables)
        self.bindings: dict[str, Value] = {**bindings, "variables": _Variables(self, variables)}

    @property
    def variables(self) -> tuple[CelVariable, ...]:
        """The variables of the policy, in their order."""
        return self._variables

    def evaluate(self, program: Program) -> Value:
        """Return the value of an expression; raises EvaluationError, HostError or BudgetExceededError."""
        return program.evaluate(self.bindings, self.run.runtime, host=self.host, meter=self.meter)

    def see(self, document: JSON) -> None:
        """Let `object` be another one from here on; variables that were computed keep their values."""
        self.bindings["object"] = document

    def with_bindings(self, bindings: Mapping[str, Value]) -> CelSession:
        """Return a session with other bindings, the same world and the same budget."""
        return self._like(bindings, self.meter)

    def for_conditions(self, bindings: Mapping[str, Value] | None = None) -> CelSession:
        """Return a session to judge match conditions in, whose costs are counted by themselves."""
        return self._like(bindings or {}, CostMeter(limit=CONDITIONS_COST))

    def for_annotations(self) -> CelSession:
        """Return a session to compute audit annotations in, which have a fresh budget."""
        return self._like({}, CostMeter(limit=POLICY_COST))

    def _like(self, bindings: Mapping[str, Value], meter: CostMeter) -> CelSession:
        kept = {name: value for name, value in self.bindings.items() if name != "variables"}
        return CelSession(
            self.run,
            {**kept, **bindings},
            self._variables,
            host=self.host,
            meter=meter,
            names_variables=self.names_variables,
        )


class _NoUserInfo(dict[str, Any]):
    """`request.userInfo` without a user: `has()` finds no field, and the name reads as an empty text.

    Kyverno: reading the name is an error then, so a policy that compares it has an error for every scanned object.
    """

    def __missing__(self, name: str) -> str:
        if name == "username":
            return ""
        raise KeyError(name)


_NO_USER_INFO: Final = _NoUserInfo()


def request_value(request: Request) -> JSONObject:
    """Return the variable `request`: the AdmissionRequest without its objects, empty parts left out."""
    gvk, gvr = request.gvk, _resource(request)
    value: JSONObject = {
        "kind": {"group": gvk.group, "version": gvk.version, "kind": gvk.kind},
        "operation": request.operation.value,
        "name": request.name,
        "namespace": request.namespace,
        "dryRun": request.dry_run,
        "userInfo": _NO_USER_INFO if request.user.is_empty else request.user.to_json(),
    }
    if gvr is not None:
        value["resource"] = {"group": gvr.group, "version": gvr.version, "resource": gvr.resource}
    if request.subresource:
        value["subResource"] = request.subresource
    value.update(request.admission)
    for key, fallback in (("requestKind", "kind"), ("requestResource", "resource")):
        if key not in value and fallback in value:
            value[key] = value[fallback]
    value.pop("uid", None)
    return {key: item for key, item in value.items() if item not in ("", None)}


def _resource(request: Request) -> GVR | None:
    """Return the resource of a request, which a manifest leaves to its kind; None for what is no object at all."""
    if request.gvr is not None or not request.gvk.kind:
        return request.gvr
    # a request made from a manifest names no resource; the API server's always do
    return resource_of(request.gvk, BUILTIN_KINDS)


def request_bindings(request: Request, *, has_objects: bool = True) -> dict[str, Value]:
    """Return the request variables of every Kubernetes-mode expression.

    Kyverno: in its own kinds `request` holds the objects too, and a missing object is an empty map; the API server's
    admission policies see null, and no objects in `request`.
    """
    value = request_value(request)
    new, old = request.object, request.old
    if has_objects:
        # Kyverno: pkg/cel/policies/*/compiler/eval.go; an unstructured object without content is an empty one
        value = {**value, "object": new, "oldObject": old}
        new, old = ({} if each is None else each for each in (new, old))
    return {
        "object": new,
        "oldObject": old,
        "request": value,
        "namespaceObject": _namespace_object(request),
    }


def authorizer_bindings(request: Request) -> dict[str, Value]:
    """Return the variables `authorizer` and `authorizer.requestResource` of the API server's own policies."""
    gvk, gvr = request.gvk, _resource(request)
    attributes = {
        "group": gvk.group if gvr is None else gvr.group,
        "resource": "" if gvr is None else gvr.resource,
        "subresource": request.subresource,
        "namespace": request.namespace,
        "name": request.name,
    }
    authorizer = Authorizer()
    return {"authorizer": authorizer, "authorizer.requestResource": ResourceCheck(authorizer, attributes)}


def _namespace_object(request: Request) -> JSON:
    """Return the Namespace of the request: as it is known, or by name and labels; null for cluster scope."""
    if request.gvk.kind == "Namespace" or not request.namespace:
        return None
    if request.namespace_object is not None:
        return request.namespace_object
    metadata: JSONObject = {"name": request.namespace}
    if request.namespace_labels:
        metadata["labels"] = dict(request.namespace_labels)
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def has_run_out(session: CelSession, error: PyvernoError) -> bool:
    """Return whether an error ends the evaluation of the policy.

    Kubernetes: an expression above its own cost limit is an ordinary error while the policy's budget lasts.
    """
    return isinstance(error, BudgetExceededError) and (error.resource != "cost" or session.meter.left < 0)


@dataclass(frozen=True, slots=True)
class Unmet:
    """The reason why match conditions stop a policy: one is false (`errors` empty), or some could not be evaluated.

    `expressions` are the texts of those that could not, one for each error.
    """

    name: str
    errors: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()


def first_unmet(session: CelSession, conditions: Sequence[CelCondition]) -> Unmet | None:
    """Judge conditions: any false one wins over errors; None = all are true. Raises BudgetExceededError."""
    failed: list[tuple[CelCondition, str]] = []
    for condition in conditions:
        try:
            if session.evaluate(condition.program) is not True:
                return Unmet(condition.name)
        except PyvernoError as error:
            # the API server's own policies continue while their budget lasts
            ends = has_run_out(session, error) if session.names_variables else isinstance(error, BudgetExceededError)
            if ends:
                raise
            failed.append((condition, error.message))
    if not failed:
        return None
    return Unmet(
        failed[0][0].name,
        tuple(error for _, error in failed),
        tuple(condition.program.text.strip() for condition, _ in failed),
    )
