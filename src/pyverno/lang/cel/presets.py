"""The environments that policies use: plain CEL, Kubernetes by version, Kyverno by policy kind.

The compiler of policies adds variables (`object`, `request`, ...).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pyverno.kube.json import JSON
from pyverno.lang.cel.checking.structs import MutationTypes, StructTypes
from pyverno.lang.cel.declarations import Library
from pyverno.lang.cel.environment import Environment
from pyverno.lang.cel.libraries.addresses import CIDRS, IPS
from pyverno.lang.cel.libraries.authorizer import AUTHORIZER, AUTHORIZER_SELECTORS
from pyverno.lang.cel.libraries.authz import (
    ENVOY,
    ENVOY_REQUEST,
    ENVOY_TYPES,
    HTTP_AUTHZ,
    HTTP_REQUEST,
    HTTP_TYPES,
)
from pyverno.lang.cel.libraries.bindings import BINDINGS, TWO_VARIABLE_COMPREHENSIONS
from pyverno.lang.cel.libraries.encoders import ENCODERS
from pyverno.lang.cel.libraries.formats import FORMATS
from pyverno.lang.cel.libraries.jwt import JWT, JWT_TYPES
from pyverno.lang.cel.libraries.kubernetes.jsonpatch import JSON_PATCH
from pyverno.lang.cel.libraries.kubernetes.lists import LIST_AGGREGATES
from pyverno.lang.cel.libraries.kubernetes.quantities import QUANTITIES
from pyverno.lang.cel.libraries.kubernetes.regex import REGEX_FIND
from pyverno.lang.cel.libraries.kubernetes.urls import URLS
from pyverno.lang.cel.libraries.kubernetes.versions import SEMVER
from pyverno.lang.cel.libraries.kyverno.certificates import X509
from pyverno.lang.cel.libraries.kyverno.chance import RANDOM, TIME
from pyverno.lang.cel.libraries.kyverno.data import (
    GZIP,
    HASH,
    JSON_LIBRARY,
    OR_VALUE,
    ROUND,
    TRANSFORM,
    USER,
    USER_TYPES,
    YAML,
)
from pyverno.lang.cel.libraries.kyverno.hostcalls import (
    GENERATOR,
    GLOBAL_CONTEXT,
    HTTP,
    IMAGE_DATA,
    IMAGE_VERIFICATION,
    NAMESPACED_GENERATOR,
    NAMESPACED_RESOURCE,
    RESOURCE,
)
from pyverno.lang.cel.libraries.kyverno.images import IMAGES
from pyverno.lang.cel.libraries.lists import LISTS
from pyverno.lang.cel.libraries.math import MATH
from pyverno.lang.cel.libraries.optionals import OPTIONALS
from pyverno.lang.cel.libraries.regex_extraction import REGEX_EXTRACTION
from pyverno.lang.cel.libraries.sets import SETS
from pyverno.lang.cel.libraries.standard import CROSS_TYPE_COMPARISONS, SPECIFIED_LIBRARY, STANDARD_LIBRARY
from pyverno.lang.cel.libraries.strings import STRINGS
from pyverno.lang.cel.values import StructValue
from pyverno.lang.cel.wellknown import WellKnownTypes

__all__ = [
    "STANDARD",
    "authz_environment",
    "kubernetes_environment",
    "kyverno_environment",
    "read_check_request",
]

NEWEST: Final = (1, 37)
_WELL_KNOWN: Final = WellKnownTypes()
_MUTATIONS: Final = StructTypes((_WELL_KNOWN, MutationTypes()))

STANDARD: Final = Environment(
    (SPECIFIED_LIBRARY, CROSS_TYPE_COMPARISONS, OPTIONALS),
    constants=_WELL_KNOWN.constants,
    structs=_WELL_KNOWN,
    strict_presence=True,
)
"""Plain CEL with optional types and ordering across number types."""


def _versioned(version: tuple[int, int]) -> tuple[Library, ...]:
    """Return the libraries of a Kubernetes version."""
    # Kubernetes: which release has which library is in apiserver's pkg/cel/environment
    libraries: list[Library] = [STANDARD_LIBRARY, URLS, REGEX_FIND]
    libraries.append(LIST_AGGREGATES.at(1 if version >= (1, 37) else 0))
    libraries.append(STRINGS.at(2 if version >= (1, 29) else 0))
    for library, introduced in (
        (AUTHORIZER, (1, 27)),
        (CROSS_TYPE_COMPARISONS, (1, 28)),
        (OPTIONALS, (1, 28)),
        (QUANTITIES, (1, 28)),
        (SETS, (1, 29)),
        (IPS, (1, 30)),
        (CIDRS, (1, 30)),
        (FORMATS, (1, 31)),
        (AUTHORIZER_SELECTORS, (1, 31)),
        (TWO_VARIABLE_COMPREHENSIONS, (1, 32)),
        (SEMVER.at(1), (1, 33)),
        (LISTS.at(3), (1, 34)),
    ):
        if version >= introduced:
            libraries.append(library)
    return tuple(libraries)


@lru_cache(maxsize=32)
def kubernetes_environment(version: tuple[int, int] = NEWEST, *, mutation: bool = False) -> Environment:
    """Return the environment of a Kubernetes version (1.27 to 1.37), optionally with the mutation types.

    >>> kubernetes_environment((1, 32)).compile("quantity('1k').asInteger()").evaluate({})
    1000
    """
    libraries = _versioned(version)
    if mutation:
        libraries = (*libraries, JSON_PATCH)
    return Environment(
        libraries,
        constants=_WELL_KNOWN.constants,
        structs=_MUTATIONS if mutation else _WELL_KNOWN,
        homogeneous=True,
        literal_checks=version >= (1, 29),
        format_checks=True,
        optional_syntax=version >= (1, 28),
    )


_KYVERNO_BASE: Final = (
    STANDARD_LIBRARY, CROSS_TYPE_COMPARISONS, OPTIONALS, BINDINGS, ENCODERS, LISTS.at(3), MATH, SETS, STRINGS.at(2),
    REGEX_EXTRACTION, CIDRS, FORMATS, IPS, LIST_AGGREGATES.at(0), REGEX_FIND, URLS, QUANTITIES, SEMVER.at(1),
    AUTHORIZER, AUTHORIZER_SELECTORS,
)  # fmt: skip
_KYVERNO_SHARED: Final = (
    HTTP, IMAGES, IMAGE_DATA, GLOBAL_CONTEXT, HASH, JSON_LIBRARY, YAML, ROUND, TIME, RANDOM, TRANSFORM, GZIP,
)  # fmt: skip
_OF_KINDS: Final[dict[str, Library]] = {
    "generator": GENERATOR,
    "image-verification": IMAGE_VERIFICATION,
    "json-patch": JSON_PATCH,
    "or-value": OR_VALUE,
    "two-variable-comprehensions": TWO_VARIABLE_COMPREHENSIONS,
    "user": USER,
    "x509": X509,
}
"""The libraries that only some policy kinds have, by the names that these kinds use for them."""
_NAMESPACED: Final = {each.name: each for each in (NAMESPACED_RESOURCE, NAMESPACED_GENERATOR)}


@lru_cache(maxsize=32)
def kyverno_environment(
    libraries: tuple[str, ...],
    *,
    namespaced: bool = False,
    homogeneous: bool = True,
    literal_checks: bool = True,
) -> Environment:
    """Return the environment of a Kyverno policy kind with these libraries beside those that every kind has.

    A `namespaced` policy reads its own namespace only. Raises KeyError for an unknown library.

    >>> kyverno_environment(("user",)).compile("image('nginx').tag()").evaluate({})
    'latest'
    """
    of_kind = (RESOURCE, *(_OF_KINDS[name] for name in libraries))
    own = tuple(_NAMESPACED.get(each.name, each) if namespaced else each for each in of_kind)
    providers = (_WELL_KNOWN, USER_TYPES, *((MutationTypes(),) if "json-patch" in libraries else ()))
    return Environment(
        (*_KYVERNO_BASE, *_KYVERNO_SHARED, *own),
        constants=_WELL_KNOWN.constants,
        structs=StructTypes(providers),
        homogeneous=homogeneous,
        literal_checks=literal_checks,
        format_checks=True,
    )


_AUTHZ_BASE: Final = (
    STANDARD_LIBRARY, CROSS_TYPE_COMPARISONS, OPTIONALS, BINDINGS, ENCODERS, LISTS.at(3), MATH, SETS, STRINGS.at(4),
    CIDRS, FORMATS, IPS, LIST_AGGREGATES.at(0), REGEX_FIND, URLS, QUANTITIES, SEMVER.at(0), RESOURCE, HTTP, IMAGES,
    IMAGE_DATA, JSON_LIBRARY, JWT,
)  # fmt: skip
_AUTHZ_MODES: Final = {
    "Envoy": (ENVOY, ENVOY_TYPES, ENVOY_REQUEST),
    "HTTP": (HTTP_AUTHZ, HTTP_TYPES, HTTP_REQUEST),
}


@lru_cache(maxsize=8)
def authz_environment(mode: str) -> Environment:
    """Return the environment of policies in mode `Envoy` or `HTTP`, which answer authorization requests.

    `object` is declared: it is the request, see `read_check_request`.

    >>> from pyverno.lang.cel.json_values import to_json
    >>> to_json(authz_environment("HTTP").compile("http.Denied('no').Response()").evaluate({}))
    {'denied': {'reason': 'no'}}
    """
    library, messages, request = _AUTHZ_MODES[mode]
    return Environment(
        (*_AUTHZ_BASE, library),
        variables={"object": request},
        constants=_WELL_KNOWN.constants,
        structs=StructTypes((_WELL_KNOWN, JWT_TYPES, messages)),
        homogeneous=True,
    )


def read_check_request(mode: str, payload: JSON) -> StructValue:
    """Return the authorization request in a document; raises DocumentError for a document that is not of that mode.

    >>> read_check_request("HTTP", {"attributes": {"method": "GET"}}).fields["attributes"].fields["method"]
    'GET'
    """
    _, messages, request = _AUTHZ_MODES[mode]
    return messages.read(request.name, payload)
