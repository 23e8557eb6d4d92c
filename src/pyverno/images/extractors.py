"""Image fields of a kind: the built-in ones, and those that a policy declares."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pyverno.errors import ExpressionSyntaxError, ValueSyntaxError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath import Expression, compile_expression
from pyverno.value import dataclass

__all__ = ["BUILTIN_EXTRACTORS", "IMAGE_VOLUMES", "Extractor", "Extractors", "compile_extractors"]

DEFAULT_NAME = "custom"
IMAGE_VOLUMES = "imageVolumes"
"""The group of images that are mounted as volumes."""


@dataclass(frozen=True, slots=True)
class Extractor:
    """One place: `fields` lead to the objects (`*` means every item or value), `value` is the image field in them.

    `within` are fields between such an object and `value`; an object that lacks them holds no image. `name` is the
    group the images are listed under; `key` the field of the object that names each of them, empty for its JSON
    pointer. `expression` turns the text of the field into the reference; `problem` is the reason why it does not parse.
    """

    fields: tuple[str, ...]
    value: str
    name: str = DEFAULT_NAME
    key: str = ""
    expression_text: str = ""
    expression: Expression | None = None
    problem: str = ""
    within: tuple[str, ...] = ()


Extractors = Mapping[str, tuple[Extractor, ...]]
"""Extractors by kind."""


def _standard(*prefix: str) -> tuple[Extractor, ...]:
    groups = ("initContainers", "containers", "ephemeralContainers")
    containers = tuple(Extractor((*prefix, group, "*"), "image", group, "name") for group in groups)
    volumes = Extractor((*prefix, "volumes", "*"), "reference", IMAGE_VOLUMES, "name", within=("image",))
    return (*containers, volumes)  # guard: an image volume is an image


_TEMPLATE = _standard("spec", "template", "spec")

BUILTIN_EXTRACTORS: Extractors = MappingProxyType(
    {
        "Pod": _standard("spec"),
        "DaemonSet": _TEMPLATE,
        "Deployment": _TEMPLATE,
        "ReplicaSet": _TEMPLATE,
        "ReplicationController": _TEMPLATE,
        "StatefulSet": _TEMPLATE,
        "Job": _TEMPLATE,
        "CronJob": _standard("spec", "jobTemplate", "spec", "template", "spec"),
    }
)
"""The places of pods and of the kinds that hold pod templates."""


def compile_extractors(document: JSON) -> Extractors:
    """Compile the field `imageExtractors` of a rule: a map from kinds to lists of places.

    Raises ValueSyntaxError when an entry has no path or no field. An expression that does not parse is kept, and fails
    when an image is found.

    >>> compile_extractors({"Task": [{"path": "/spec/steps/*", "value": "image", "key": "name"}]})["Task"][0].fields
    ('spec', 'steps', '*')
    """
    if not isinstance(document, dict):
        return MappingProxyType({})
    compiled = {
        kind: tuple(_extractor(entry) for entry in (entries if isinstance(entries, list) else ()))
        for kind, entries in document.items()
    }
    return MappingProxyType(compiled)


def _extractor(entry: JSON) -> Extractor:
    fields = tuple(segment for part in _read_text(entry, "path").split("/") if (segment := part.strip(" ")))
    value = _read_text(entry, "value")
    if not value:
        if not fields:
            raise ValueSyntaxError("an image extractor needs a path")
        fields, value = fields[:-1], fields[-1]
    if value == "*":
        text = "the value of an image extractor, or the last part of its path, is the name of the image field, no `*`"
        raise ValueSyntaxError(text)  # guard: an extractor names its field
    text = _read_text(entry, "jmesPath")
    expression, problem = None, ""
    if text:
        try:
            expression = compile_expression(text)
        except ExpressionSyntaxError as error:
            problem = f"invalid jmespath {text}: {error.message}"
    return Extractor(
        fields, value, _read_text(entry, "name") or DEFAULT_NAME, _read_text(entry, "key"), text, expression, problem
    )


def _read_text(entry: JSON, name: str) -> str:
    value = entry.get(name) if isinstance(entry, dict) else None
    return value if isinstance(value, str) else ""
