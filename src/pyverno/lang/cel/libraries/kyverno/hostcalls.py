"""Kyverno's libraries that call the host: resource, http, globalContext, image metadata, generator, verification.

Each call goes to the `CelHost` of the evaluation, which confines it; its errors become CEL errors that begin with
Kyverno's text. Functions exist in PascalCase and, since Kyverno 1.18, in camelCase. This module must never do I/O
itself, and never put a response into an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from pyverno.errors import DocumentError, EvaluationError, HostError
from pyverno.kube.json import JSON, JSONObject, decode
from pyverno.kube.jsonscan import has_more_values
from pyverno.lang.cel.declarations import Declaration, Implementation, Library, function
from pyverno.lang.cel.json_values import to_json, with_doubles
from pyverno.lang.cel.libraries.kyverno.hosterrors import HostErrors
from pyverno.lang.cel.runtime.evaluation import Evaluation
from pyverno.lang.cel.types import opaque
from pyverno.lang.cel.values import Value
from pyverno.lang.cel.work import whole
from pyverno.value import dataclass

__all__ = [
    "GENERATOR",
    "GLOBAL_CONTEXT",
    "GVR",
    "HTTP",
    "IMAGE_DATA",
    "IMAGE_VERIFICATION",
    "NAMESPACED_GENERATOR",
    "NAMESPACED_RESOURCE",
    "RESOURCE",
    "LibraryContext",
]

_PASCAL: Final = (1, 14)
_CAMEL: Final = (1, 18)
_OBJECT: Final = "map(string, any)"
_ALL: Final = whole()
_LABELS: Final = "map(string, string)"


@dataclass(frozen=True, slots=True)
class LibraryContext:
    """The value of a library's variable (`resource`, `http`, ...); `ca_bundle` is that of `http.Client`."""

    cel_type: str
    ca_bundle: str = ""


@dataclass(frozen=True, slots=True)
class GVR:
    """A group, version and plural name of a resource."""

    cel_type: ClassVar[str] = "schema.GroupVersionResource"
    group: str
    version: str
    resource: str

    @property
    def api_version(self) -> str:
        """The apiVersion as objects carry it."""
        return f"{self.group}/{self.version}" if self.group else self.version


def _both_cases(pascal: str, camel: str, *signatures: str) -> Callable[[Implementation], tuple[Declaration, ...]]:
    """Declare a function under its PascalCase and its camelCase name."""

    def declare(implementation: Implementation) -> tuple[Declaration, ...]:
        return (
            function(pascal, *signatures, work=_ALL, in_context=True, since=_PASCAL)(implementation),
            function(camel, *signatures, work=_ALL, in_context=True, since=_CAMEL)(implementation),
        )

    return declare


# resource

_RESOURCE: Final = "resource.Context"


def _target(args: tuple[Value, ...]) -> tuple[str, str, tuple[Value, ...]]:
    """Return apiVersion, resource and the other arguments of a call with either texts or a gvr in front."""
    if isinstance(args[0], GVR):
        return args[0].api_version, args[0].resource, args[1:]
    return args[0], args[1], args[2:]


def _get(evaluation: Evaluation, api_version: str, resource: str, namespace: str | None, name: str) -> JSON:
    with HostErrors("failed to get resource", (api_version, resource, namespace, name)):
        return evaluation.host.get_resource(api_version, resource, namespace, name)


def _list(
    evaluation: Evaluation, api_version: str, resource: str, namespace: str | None, labels: Mapping[str, str]
) -> JSONObject:
    with HostErrors("failed to list resource", (api_version, resource, namespace, labels)):
        return evaluation.host.list_resources(api_version, resource, namespace, labels)


def _post(evaluation: Evaluation, api_version: str, resource: str, namespace: str | None, body: Value) -> JSONObject:
    with HostErrors("failed to create resource", (api_version, resource, namespace, body)):
        return evaluation.host.post_resource(api_version, resource, namespace, to_json(body))


@_both_cases(
    "Get",
    "get",
    f"{_RESOURCE}.(string, string, string, string) -> {_OBJECT}",
    f"{_RESOURCE}.({GVR.cel_type}, string, string) -> {_OBJECT}",
)
def get(evaluation: Evaluation, _: LibraryContext, *args: Value) -> JSON:
    """An object by apiVersion, plural, namespace and name, or null when it does not exist.

    A resource may be `plural/subresource`; an empty namespace means none. Errors: `failed to get resource: ...`.
    """
    api_version, resource, (namespace, name) = _target(args)
    return _get(evaluation, api_version, resource, namespace, name)


@_both_cases(
    "Get",
    "get",
    f"{_RESOURCE}.(string, string, string) -> {_OBJECT}",
    f"{_RESOURCE}.({GVR.cel_type}, string) -> {_OBJECT}",
)
def namespaced_get(evaluation: Evaluation, _: LibraryContext, *args: Value) -> JSON:
    """An object of the policy's own namespace by apiVersion, plural and name, or null."""
    api_version, resource, (name,) = _target(args)
    return _get(evaluation, api_version, resource, None, name)


@_both_cases(
    "List",
    "list",
    f"{_RESOURCE}.(string, string, string) -> {_OBJECT}",
    f"{_RESOURCE}.(string, string, string, {_LABELS}) -> {_OBJECT}",
    f"{_RESOURCE}.({GVR.cel_type}, string) -> {_OBJECT}",
    f"{_RESOURCE}.({GVR.cel_type}, string, {_LABELS}) -> {_OBJECT}",
)
def list_(evaluation: Evaluation, _: LibraryContext, *args: Value) -> JSONObject:
    """A list object with its `items`: of a namespace (empty = all), with labels when given."""
    api_version, resource, (namespace, *labels) = _target(args)
    return _list(evaluation, api_version, resource, namespace, labels[0] if labels else {})


@_both_cases(
    "List",
    "list",
    f"{_RESOURCE}.(string, string) -> {_OBJECT}",
    f"{_RESOURCE}.(string, string, {_LABELS}) -> {_OBJECT}",
    f"{_RESOURCE}.({GVR.cel_type}) -> {_OBJECT}",
    f"{_RESOURCE}.({GVR.cel_type}, {_LABELS}) -> {_OBJECT}",
)
def namespaced_list(evaluation: Evaluation, _: LibraryContext, *args: Value) -> JSONObject:
    """A list object of the policy's own namespace, with labels when given."""
    api_version, resource, labels = _target(args)
    return _list(evaluation, api_version, resource, None, labels[0] if labels else {})


@_both_cases(
    "Post",
    "post",
    f"{_RESOURCE}.(string, string, string, {_OBJECT}) -> {_OBJECT}",
    f"{_RESOURCE}.(string, string, {_OBJECT}) -> {_OBJECT}",
)
def post(evaluation: Evaluation, _: LibraryContext, *args: Value) -> JSONObject:
    """Create an object (in a namespace when given) and return the answer."""
    api_version, resource, (*namespace, body) = _target(args)
    return _post(evaluation, api_version, resource, namespace[0] if namespace else "", body)


@_both_cases("Post", "post", f"{_RESOURCE}.(string, string, {_OBJECT}) -> {_OBJECT}")
def namespaced_post(evaluation: Evaluation, _: LibraryContext, api_version: str, resource: str, body: Value) -> JSON:
    """Create an object in the policy's own namespace and return the answer."""
    return _post(evaluation, api_version, resource, None, body)


@_both_cases("ToGVR", "toGVR", f"{_RESOURCE}.(string, string) -> {GVR.cel_type}")
def to_gvr(evaluation: Evaluation, _: LibraryContext, api_version: str, kind: str) -> GVR:
    """The resource of a kind, by discovery."""
    with HostErrors("failed to map kind to resource", (api_version, kind)):
        return GVR(*evaluation.host.to_gvr(api_version, kind))


def _resource_library(*declarations: Declaration, doc: str) -> Library:
    return Library(
        "kyverno.resource",
        declarations,
        types=(opaque(_RESOURCE), opaque(GVR.cel_type)),
        variables={"resource": opaque(_RESOURCE)},
        globals={"resource": LibraryContext(_RESOURCE)},
        introduced="1.14",
        doc=doc,
    )


RESOURCE: Final = _resource_library(*get, *list_, *post, *to_gvr, doc="Objects of the cluster.")
NAMESPACED_RESOURCE: Final = _resource_library(
    *namespaced_get, *namespaced_list, *namespaced_post, *to_gvr, doc="Objects of the policy's own namespace."
)

# http

_HTTP: Final = "http.Context"


MAX_ANSWER_VALUES: Final = 500_000
"""Values of the JSON of one answer; a value takes 2 bytes of its text and up to 200 of memory."""


def _answer(evaluation: Evaluation, status: int, body: bytes) -> JSONObject:
    """Return an answer as policies see it: a JSON map with `statusCode`, other content under `body`."""
    if has_more_values(body, MAX_ANSWER_VALUES):
        raise HostError(f"the answer has more than {MAX_ANSWER_VALUES} values")
    try:
        value = with_doubles(decode(body), evaluation.runtime.budget)
    except DocumentError:
        value = None
    if isinstance(value, dict):
        return {**value, "statusCode": status}
    return {"body": value, "statusCode": status}


def _send(
    evaluation: Evaluation, client: LibraryContext, method: str, url: str, *, data: Value, headers: Mapping[str, str]
) -> JSONObject:
    body = to_json(data) if method == "POST" else None
    with HostErrors("request failed", (url, data, headers)):
        return _answer(evaluation, *evaluation.host.http(method, url, body, headers, client.ca_bundle))


@_both_cases("Get", "get", f"{_HTTP}.(string) -> any", f"{_HTTP}.(string, {_LABELS}) -> any")
def http_get(evaluation: Evaluation, client: LibraryContext, url: str, headers: Value = None) -> JSONObject:
    """The JSON at a URL with `statusCode` added; other content becomes `body`, which is null for what is not JSON."""
    return _send(evaluation, client, "GET", url, data=None, headers=headers or {})


@_both_cases("Post", "post", f"{_HTTP}.(string, any) -> any", f"{_HTTP}.(string, any, {_LABELS}) -> any")
def http_post(
    evaluation: Evaluation, client: LibraryContext, url: str, data: Value, headers: Value = None
) -> JSONObject:
    """The answer to data sent as JSON, in the form of `http.Get`."""
    return _send(evaluation, client, "POST", url, data=data, headers=headers or {})


@_both_cases("Client", "client", f"{_HTTP}.(string) -> {_HTTP}")
def http_client(_: Evaluation, client: LibraryContext, ca_bundle: str) -> LibraryContext:
    """A client that trusts only a CA bundle in PEM; an empty text changes nothing."""
    if not ca_bundle:
        return client
    if "-----BEGIN CERTIFICATE-----" not in ca_bundle:
        raise EvaluationError("request failed: failed to parse PEM CA bundle for APICall")
    return LibraryContext(_HTTP, ca_bundle)


HTTP: Final = Library(
    "kyverno.http",
    (*http_get, *http_post, *http_client),
    types=(opaque(_HTTP),),
    variables={"http": opaque(_HTTP)},
    globals={"http": LibraryContext(_HTTP)},
    introduced="1.14",
    doc="HTTP calls.",
)

# global context

_GLOBAL: Final = "globalcontext.Context"


@_both_cases("Get", "get", f"{_GLOBAL}.(string) -> dyn", f"{_GLOBAL}.(string, string) -> dyn")
def global_get(evaluation: Evaluation, _: LibraryContext, name: str, projection: str = "") -> JSON:
    """The data of a global context entry (or of one of its projections), null when there is no such entry."""
    with HostErrors("failed to get global reference", (name, projection)):
        return with_doubles(evaluation.host.global_context(name, projection), evaluation.runtime.budget)


GLOBAL_CONTEXT: Final = Library(
    "kyverno.globalcontext",
    global_get,
    types=(opaque(_GLOBAL),),
    variables={"globalContext": opaque(_GLOBAL)},
    globals={"globalContext": LibraryContext(_GLOBAL)},
    introduced="1.14",
    doc="Global context entries.",
)

# image metadata

_IMAGE: Final = "imagedata.Context"


@_both_cases("GetMetadata", "getMetadata", f"{_IMAGE}.(string) -> dyn")
def image_metadata(evaluation: Evaluation, _: LibraryContext, reference: str) -> JSON:
    """The registry's data of an image: registry, repository, tag, digest, manifest, config, ..."""
    with HostErrors("failed to get image data", (reference,)):
        return with_doubles(evaluation.host.image_metadata(reference), evaluation.runtime.budget)


IMAGE_DATA: Final = Library(
    "kyverno.imagedata",
    image_metadata,
    types=(opaque(_IMAGE),),
    variables={"image": opaque(_IMAGE)},
    globals={"image": LibraryContext(_IMAGE)},
    introduced="1.14",
    doc="Metadata of images in registries.",
)

# generator

_GENERATOR: Final = "generator.Context"


@_both_cases("Apply", "apply", f"{_GENERATOR}.(string, list({_OBJECT})) -> bool")
def generate(evaluation: Evaluation, _: LibraryContext, namespace: str, objects: Value) -> bool:
    """Ask for objects in a namespace; always true when that works."""
    with HostErrors("failed to generate resources", (namespace, objects)):
        evaluation.host.generate(namespace, [to_json(item) for item in objects])
    return True


@_both_cases("Apply", "apply", f"{_GENERATOR}.(list({_OBJECT})) -> bool")
def generate_here(evaluation: Evaluation, _: LibraryContext, objects: Value) -> bool:
    """Ask for objects in the namespace of the policy; always true when that works."""
    with HostErrors("failed to generate resources", (objects,)):
        evaluation.host.generate(None, [to_json(item) for item in objects])
    return True


GENERATOR: Final = Library(
    "kyverno.generator",
    generate,
    types=(opaque(_GENERATOR),),
    variables={"generator": opaque(_GENERATOR)},
    globals={"generator": LibraryContext(_GENERATOR)},
    introduced="1.15",
    doc="Objects to be generated (GeneratingPolicy only).",
)
NAMESPACED_GENERATOR: Final = Library(
    "kyverno.generator",
    (*generate, *generate_here),
    types=(opaque(_GENERATOR),),
    variables={"generator": opaque(_GENERATOR)},
    globals={"generator": LibraryContext(_GENERATOR)},
    introduced="1.19",
    doc="Objects to be generated in the policy's own namespace (NamespacedGeneratingPolicy).",
)

# image verification


@function("verifyImageSignatures", "(string, list(dyn)) -> int", in_context=True, work=_ALL)
def verify_image_signatures(evaluation: Evaluation, image: str, attestors: Value) -> int:
    """The number of attestors that verify the image's signature."""
    with HostErrors("failed to verify image", (image, attestors)):
        return evaluation.host.verify_image(image, list(attestors), None)


@function("verifyAttestationSignatures", "(string, dyn, list(dyn)) -> int", in_context=True, work=_ALL)
def verify_attestation_signatures(evaluation: Evaluation, image: str, attestation: Value, attestors: Value) -> int:
    """The number of attestors that verify an attestation of the image."""
    with HostErrors("failed to verify attestation", (image, attestation, attestors)):
        return evaluation.host.verify_image(image, list(attestors), to_json(attestation))


@function("getImageData", "(string) -> dyn", in_context=True, work=_ALL)
def get_image_data(evaluation: Evaluation, image: str) -> JSON:
    """The registry's data of an image."""
    with HostErrors("failed to get imagedata", (image,)):
        return with_doubles(evaluation.host.image_metadata(image), evaluation.runtime.budget)


@function("extractPayload", "(string, dyn) -> dyn", in_context=True, work=_ALL)
def extract_payload(evaluation: Evaluation, image: str, attestation: Value) -> JSON:
    """The payload of a verified attestation."""
    with HostErrors("failed to get payload", (image, attestation)):
        return with_doubles(evaluation.host.image_payload(image, to_json(attestation)))


IMAGE_VERIFICATION: Final = Library(
    "kyverno.imageverify",
    (verify_image_signatures, verify_attestation_signatures, get_image_data, extract_payload),
    introduced="1.14",
    doc="Signatures and attestations of images (ImageValidatingPolicy only).",
)
