"""Context entries: variables that a rule declares, computed lazily, each seeing the ones before it.

Entries other than `variable` are read through the broker and merged into a value of the same name; supplied values
replace entries that this Host cannot answer. Sizes of all loaded entries count against the context budget. An entry
that no expression uses is never loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import orjson

from pyverno.engine.host import HttpCall
from pyverno.engine.redaction import redact_errors, redact_values
from pyverno.engine.rule import Run
from pyverno.engine.scope import Scope
from pyverno.engine.variables import merged
from pyverno.errors import (
    ContextEntryError,
    EvaluationError,
    ExpressionError,
    HostError,
    HostUnavailableError,
    NotFoundError,
    SubstitutionError,
)
from pyverno.kube.json import JSON, JSONObject, go_text
from pyverno.lang.jmespath.values import check_size
from pyverno.lang.template import Template
from pyverno.lang.template.expression_text import ExpressionText
from pyverno.value import dataclass, field

__all__ = [
    "ApiCallBinding",
    "ConfigMapBinding",
    "GlobalReferenceBinding",
    "ImageRegistryBinding",
    "ServiceCall",
    "VariableBinding",
]


def _charge(run: Run, value: JSON) -> JSON:
    """Count a loaded value against the context budget and return it."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        size = len(value)
    else:
        try:
            size = len(orjson.dumps(value))
        except (TypeError, ValueError) as error:
            raise EvaluationError(f"a context entry cannot be written as JSON: {error}") from error
    run.runtime.budget.charge_context(size)
    return value


@dataclass(frozen=True, slots=True)
class _AnswerPrefix:
    """Prefixes the text of a host's error response; an error without a response is unchanged.

    Not a generator: since Python 3.12, the frames of one that an error is thrown into keep the error in a cycle.
    """

    prefix: str

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Raise the error with the prefix."""
        if isinstance(error, HostError) and not isinstance(error, HostUnavailableError):
            raise _same_kind(error)(self.prefix + error.message) from error


def _same_kind(error: HostError) -> type[HostError]:
    """Return the class that an error keeps: what a host cannot answer is another case than a refusal."""
    return next(each for each in (NotFoundError, HostUnavailableError, HostError) if isinstance(error, each))


@dataclass(frozen=True, slots=True)
class _ErrorPrefix:
    """Puts a prefix in front of the text of an error of an expression or of the host."""

    prefix: str

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Raise the error with the prefix."""
        if isinstance(error, HostError):
            raise _same_kind(error)(f"{self.prefix}: {error.message}") from error
        if isinstance(error, ExpressionError):
            raise ContextEntryError(f"{self.prefix}: {error.message}", is_missing=error.is_missing) from error


def _apply_query(query: ExpressionText, value: JSON, run: Run, name: str, prefix: str = "") -> JSON:
    """Evaluate the `jmesPath` of an entry on its data."""
    try:
        return query.evaluate(value, run.scope, run.runtime, delete_request=run.is_delete)
    except SubstitutionError as error:
        text = f"failed to substitute variables in context entry {name} JMESPath {query.text}: {error.message}"
        raise ContextEntryError(f"{prefix}{text}", is_missing=error.is_missing) from error
    except ExpressionError as error:
        text = f"failed to apply JMESPath {query.text} for context entry {name}: {error.message}"
        raise ContextEntryError(f"{prefix}{text}", is_missing=error.is_missing) from error


def _render(template: Template, run: Run, entry: str) -> JSON:
    """Return a part of an entry with its variables; an error names the entry, and the part as it was written."""
    try:
        return template.render(run.scope, run.runtime, delete_request=run.is_delete)
    except SubstitutionError as error:
        text = f"failed to substitute variables in context entry {entry} {go_text(template.document)}: {error.message}"
        raise ContextEntryError(text, is_missing=error.is_missing) from error


def _render_text(template: Template, run: Run, entry: str, what: str) -> str:
    value = _render(template, run, entry)
    if not isinstance(value, str):
        raise EvaluationError(f"{what} must be a string after substituting variables")
    return value


@dataclass(frozen=True, slots=True)
class VariableBinding:
    """A `variable` entry: `value`, `jmesPath` (on the value, or on all variables) and `default`."""

    name: str
    value: Template | None = None
    query: ExpressionText | None = None
    default: Template | None = None

    def bind(self, run: Run) -> Scope:
        """Return the scope of the run with this variable."""
        return run.scope.bind(self.name, lambda: self._load(run))

    def _load(self, run: Run) -> JSON:
        value = self._load_value(run)
        if value is None:
            text = f"failed to add context entry for variable {self.name} since it evaluated to nil"
            raise ContextEntryError(text, is_missing=True)
        check_size(value, run.runtime.budget, max_parts=run.runtime.budget.text_bytes)
        return _charge(run, value)

    def _load_value(self, run: Run) -> JSON:
        if self.query is not None and self.query.inner:
            self._check_variables(self.query, run)
        if self.value is not None:
            value = _render(self.value, run, self.name)
            if self.query is None:
                return value
            try:
                return self._query(self.query, value, run)
            except EvaluationError as error:
                return self._default_or(run, error, self.name, error.message)
        assert self.query is not None  # noqa: S101 - compiled entries have a value or a query
        try:
            if self.query.is_variable:
                return self._text(self.query, run)
            found = self.query.evaluate(run.scope, run.scope, run.runtime, delete_request=run.is_delete)
        except EvaluationError as error:
            return self._default_or(run, error, "<nil>", f"JMESPath query failed: {error.message}")
        except ContextEntryError as error:
            if not error.is_missing:
                raise
            return self._default_or(run, error, "<nil>", error.message)
        return self._render_default(run) if found is None and self.default is not None else found

    def _check_variables(self, query: ExpressionText, run: Run) -> None:
        """Raise ContextEntryError for a variable in the `jmesPath` that has no value, whatever the default is."""
        try:
            query.substitute(run.scope, run.runtime, delete_request=run.is_delete)
        except SubstitutionError as error:
            text = f"failed to substitute variables in context entry {self.name} {query.text}: {error.message}"
            raise ContextEntryError(text, is_missing=error.is_missing) from error

    def _query(self, query: ExpressionText, value: JSON, run: Run) -> JSON:
        """Evaluate the query on the value; one that is a variable as a whole reads the key which its text names."""
        if query.by_name is None:
            return query.evaluate(value, run.scope, run.runtime, delete_request=run.is_delete)
        return query.by_name.evaluate(value, run.runtime, [self._text(query, run)])

    def _text(self, query: ExpressionText, run: Run) -> str:
        """Return the text that a `jmesPath` which is one variable yields: Kyverno refuses other values there."""
        value = query.evaluate(run.scope, run.scope, run.runtime, delete_request=run.is_delete)
        if not isinstance(value, str):
            raise ContextEntryError(f"jmespath value must be a string {self.name} {query.text}")
        return value

    def _default_or(self, run: Run, error: ExpressionError, subject: str, reason: str) -> JSON:
        # Kyverno prints the value; here it may come from a Secret, which a denial must not reveal
        if self.default is None:
            assert self.query is not None  # noqa: S101 - only a query fails here
            text = f"failed to apply jmespath {self.query.text} to variable {subject}: {reason}"
            raise ContextEntryError(text, is_missing=error.is_missing) from error
        return self._render_default(run)

    def _render_default(self, run: Run) -> JSON:
        assert self.default is not None  # noqa: S101 - checked by the callers
        return _render(self.default, run, self.name)


def _bind_loaded(name: str, run: Run, load: Callable[[], JSON]) -> Scope:
    """Bind an entry that is read from the host: merged into the value of that name, which is also its fallback."""
    below = run.scope

    def value() -> JSON:
        try:
            found = _charge(run, load())
        except HostError:
            if name in run.supplied:
                return below[name]
            raise
        if isinstance(found, dict):
            try:
                return merged(below[name], found)
            except KeyError:
                return found
        return found

    return below.bind(name, value)


@dataclass(frozen=True, slots=True)
class ConfigMapBinding:
    """A `configMap` entry: {data, metadata} of the ConfigMap."""

    name: str
    config_map: Template
    namespace: Template | None = None

    def bind(self, run: Run) -> Scope:
        """Return the scope of the run with the ConfigMap."""
        return _bind_loaded(self.name, run, lambda: self._load(run))

    def _load(self, run: Run) -> JSON:
        name = _render_text(self.config_map, run, self.name, "the name of the ConfigMap")
        namespace = (
            _render_text(self.namespace, run, self.name, "the namespace of the ConfigMap") if self.namespace else ""
        )
        namespace = namespace or run.rule.info.policy.namespace or "default"
        used = ((self.config_map, name), *(() if self.namespace is None else ((self.namespace, namespace),)))
        with _ErrorPrefix(f"failed to retrieve config map for context entry {self.name}"):
            found = redact_errors(lambda: self._read(run, namespace, name), *used)
        return {"data": found.get("data") or {}, "metadata": found.get("metadata") or {}}

    def _read(self, run: Run, namespace: str, name: str) -> JSONObject:
        with _AnswerPrefix(f"failed to get configmap {namespace}/{name} : "):
            return run.broker.config_map(namespace, name)


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """The `service` of an `apiCall` entry."""

    url: Template
    headers: tuple[tuple[Template, Template], ...] = ()
    ca_bundle: Template | None = None


@dataclass(frozen=True, slots=True)
class ApiCallBinding:
    """An `apiCall` entry: a path of the API server or a service, with body, query and default."""

    name: str
    url_path: Template | None = None
    service: ServiceCall | None = None
    method: str = "GET"
    data: tuple[tuple[str, Template], ...] = ()
    query: ExpressionText | None = None
    default: Template | None = None

    def bind(self, run: Run) -> Scope:
        """Return the scope of the run with the answer."""
        return _bind_loaded(self.name, run, lambda: self._load(run))

    def _load(self, run: Run) -> JSON:
        with _ErrorPrefix("failed to fetch data for APICall"):
            send = self._prepare(run)
            try:
                answer = send()
            except HostError:
                if self.default is None or self.name in run.supplied:
                    raise
                return _render(self.default, run, self.name)
        if self.query is None:
            return answer
        return _apply_query(self.query, answer, run, self.name, "failed to store data for APICall: ")

    def _prepare(self, run: Run) -> Callable[[], JSON]:
        """Substitute everything first: an error in that is an error even where there is a default."""
        body: JSON = None
        if self.data:
            body = {key: _render(value, run, self.name) for key, value in self.data}
        if self.url_path is not None:
            path = _render_text(self.url_path, run, self.name, "the urlPath")
            return partial(redact_errors, partial(self._call_path, run, path, body), (self.url_path, path))
        assert self.service is not None  # noqa: S101 - compiled entries have one of the two
        service = self.service
        headers = {
            _render_text(key, run, self.name, "a header name"): _render_text(value, run, self.name, "a header value")
            for key, value in service.headers
        }
        bundle = _render_text(service.ca_bundle, run, self.name, "the caBundle") if service.ca_bundle else ""
        call = HttpCall(
            self.method, _render_text(service.url, run, self.name, "the url of the service"), headers, body, bundle
        )
        return partial(redact_errors, partial(run.broker.http_call, call), (service.url, call.url))

    def _call_path(self, run: Run, path: str, body: JSON) -> JSON:
        with _AnswerPrefix(f"failed to {self.method} resource with raw url: {path}: "):
            return run.broker.api_call(path, method=self.method, body=body)


@dataclass(frozen=True, slots=True)
class ImageRegistryBinding:
    """An `imageRegistry` entry: manifest and configuration of an image."""

    name: str
    reference: Template
    query: ExpressionText | None = None
    credentials: JSONObject | None = field(default=None)

    def bind(self, run: Run) -> Scope:
        """Return the scope of the run with the image's data."""
        return _bind_loaded(self.name, run, lambda: self._load(run))

    def _load(self, run: Run) -> JSON:
        reference = _render_text(self.reference, run, self.name, "the image reference")
        found = redact_errors(lambda: self._fetch(run, reference), (self.reference, reference))
        return found if self.query is None else _apply_query(self.query, found, run, self.name)

    def _fetch(self, run: Run, reference: str) -> JSON:
        with _AnswerPrefix(f"failed to fetch image descriptor: {reference}, error: "):
            return run.broker.image_data(reference, credentials=self.credentials)


@dataclass(frozen=True, slots=True)
class GlobalReferenceBinding:
    """A `globalReference` entry: data of a GlobalContextEntry."""

    name: str
    entry: Template
    query: ExpressionText | None = None

    def bind(self, run: Run) -> Scope:
        """Return the scope of the run with the entry's data."""
        return _bind_loaded(self.name, run, lambda: self._load(run))

    def _load(self, run: Run) -> JSON:
        name = _render_text(self.entry, run, self.name, "the name of the global reference")
        # Kyverno's text names an APICall here, too
        with _ErrorPrefix(f"failed to marshal APICall data for context entry {self.name}"):
            found = redact_errors(lambda: run.broker.global_entry(name), (self.entry, name))
            if found is None:
                raise EvaluationError(redact_values(f"failed to fetch entry key={name}", self.entry, name))
            return found if self.query is None else _apply_query(self.query, found, run, self.name)
