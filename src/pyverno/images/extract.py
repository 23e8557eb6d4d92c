"""Extract the images that a resource names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyverno.errors import BudgetExceededError, PyvernoError, ValueSyntaxError
from pyverno.images.extractors import BUILTIN_EXTRACTORS, Extractor, Extractors
from pyverno.images.info import ImageInfo, parse_image_at
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.runtime import Budget, Runtime

__all__ = ["extract_images", "find_images"]

_STEPS_OF_IMAGE = 16


class _Place(NamedTuple):
    """A value inside a resource, with its path and the pull secrets listed along it."""

    value: JSON
    path: tuple[str, ...] = ()
    pull_secrets: tuple[str, ...] = ()


def extract_images(
    resource: JSONObject,
    extractors: Extractors | None = None,
    *,
    default_registry: str = "docker.io",
    mutate_registry: bool = True,
    runtime: Runtime | None = None,
) -> JSONObject:
    """Return the variable `images` of a resource: group, then container name, then the parts of the reference.

    The same as `find_images`, as plain JSON; empty when the resource has no images.

    >>> pod = {"kind": "Pod", "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    >>> extract_images(pod)["containers"]["web"]["reference"]
    'docker.io/nginx:latest'
    """
    found = find_images(
        resource, extractors, default_registry=default_registry, mutate_registry=mutate_registry, runtime=runtime
    )
    return {group: {name: image.to_entry() for name, image in images.items()} for group, images in found.items()}


def find_images(
    resource: JSONObject,
    extractors: Extractors | None = None,
    *,
    default_registry: str = "docker.io",
    mutate_registry: bool = True,
    runtime: Runtime | None = None,
) -> dict[str, dict[str, ImageInfo]]:
    """Return the images of a resource by group and name.

    `extractors` replace the built-in image fields of the kinds that they list; in other kinds, only they find images.
    Blank images and empty groups are left out. Raises ValueSyntaxError with Kyverno's text when the resource has
    another shape, a reference does not parse, or an expression fails.

    >>> find_images({"kind": "ConfigMap"})
    {}
    """
    # Kyverno: pkg/utils/api ExtractImagesFromResource
    kind = resource.get("kind")
    kind = kind if isinstance(kind, str) else ""
    chosen = _extractors_for(kind, extractors)
    result: dict[str, dict[str, ImageInfo]] = {}
    runtime = runtime or Runtime()
    for extractor in chosen:
        images: dict[str, ImageInfo] = {}
        for place in _places(resource, extractor.fields, runtime.budget):
            found = _reference(place, extractor, runtime)
            if found is not None:
                name, pointer, text = found
                image = parse_image_at(
                    pointer, text, default_registry=default_registry, mutate_registry=mutate_registry
                )
                images[name] = image.at(pointer, place.pull_secrets)
        if images:
            result[extractor.name] = images
    return result


def _extractors_for(kind: str, extractors: Mapping[str, tuple[Extractor, ...]] | None) -> tuple[Extractor, ...]:
    if extractors is None or kind not in extractors:
        return BUILTIN_EXTRACTORS.get(kind, ())
    if not extractors[kind]:
        raise ValueSyntaxError(f"no extractors found for {kind}")
    return extractors[kind]


def _places(resource: JSON, fields: tuple[str, ...], budget: Budget) -> list[_Place]:
    """Return the objects that hold images, in document order; the budget is charged for each of them."""
    places = [_Place(resource)]
    for field in fields:
        children: list[_Place] = []
        for place in places:
            if field == "*":
                found = _every_child(place)
                budget.charge_steps(_STEPS_OF_IMAGE * len(found))
                children += found
            else:
                children.append(_child(place, field))
        places = [child for child in children if child.value is not None]
    return [_with_secrets(place) for place in places]


def _every_child(place: _Place) -> list[_Place]:
    value, path, secrets = place
    if isinstance(value, list):
        return [_Place(item, (*path, str(index)), secrets) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return [_Place(item, (*path, key), secrets) for key, item in value.items()]
    raise ValueSyntaxError("invalid type")


def _child(place: _Place, field: str) -> _Place:
    place = _with_secrets(place)
    return _Place(place.value.get(field), (*place.path, field), place.pull_secrets)


def _with_secrets(place: _Place) -> _Place:
    """Return the place with the pull secrets that its own object lists; it has to be an object."""
    if not isinstance(place.value, dict):
        raise ValueSyntaxError("invalid image config")
    listed = place.value.get("imagePullSecrets")
    if not isinstance(listed, list):
        return place
    names = [secret.get("name") for secret in listed if isinstance(secret, dict)]
    return place._replace(pull_secrets=(*place.pull_secrets, *(name for name in names if isinstance(name, str))))


def _reference(place: _Place, extractor: Extractor, runtime: Runtime) -> tuple[str, str, str] | None:
    """Return name, pointer and reference of the image at a place, None for a missing one."""
    pointer = f"/{'/'.join(place.path)}/{extractor.value}"
    name = pointer
    if extractor.key:
        name = place.value.get(extractor.key)
        if not isinstance(name, str):
            raise ValueSyntaxError("invalid key")
    text = place.value.get(extractor.value)
    if not isinstance(text, str) or not text.strip():
        return None
    if extractor.expression_text:
        text = _transform(text, extractor, runtime)
    return name, pointer, text


def _transform(text: str, extractor: Extractor, runtime: Runtime) -> str:
    if extractor.expression is None:
        raise ValueSyntaxError(extractor.problem)
    try:
        result = extractor.expression.evaluate(text, runtime)
    except BudgetExceededError:
        raise
    except PyvernoError as error:
        message = f"failed to apply jmespath {extractor.expression_text}: {error.message}"
        raise ValueSyntaxError(message) from error
    if not isinstance(result, str):
        # Kyverno quotes what it produced
        raise ValueSyntaxError(f"jmespath {extractor.expression_text} must produce a string")
    return result
