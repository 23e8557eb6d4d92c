"""Extract the images that a resource names."""

from __future__ import annotations

from collections.abc import Container, Mapping
from itertools import chain, count
from typing import NamedTuple

from pyverno.errors import BudgetExceededError, PyvernoError, ValueSyntaxError
from pyverno.images.extractors import BUILTIN_EXTRACTORS, Extractor, Extractors
from pyverno.images.info import ImageInfo, parse_image_at
from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.runtime import Budget, Runtime

__all__ = ["FoundImages", "extract_images", "find_images", "list_images"]

_STEPS_OF_IMAGE = 16


class FoundImages(NamedTuple):
    """The images of a resource as group, name and image, and why others cannot be read."""

    images: tuple[tuple[str, str, ImageInfo], ...]
    problems: tuple[str, ...] = ()


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
    Blank images and empty groups are left out. Of several images with one name in a group, the last has it, as in
    Kyverno, and the others are named by their JSON pointers. Raises ValueSyntaxError with Kyverno's text when the
    resource has another shape, a reference does not parse, or an expression fails.

    >>> find_images({"kind": "ConfigMap"})
    {}
    """
    found = list_images(
        resource, extractors, default_registry=default_registry, mutate_registry=mutate_registry, runtime=runtime
    )
    if found.problems:
        raise ValueSyntaxError(found.problems[0])
    result: dict[str, dict[str, ImageInfo]] = {}
    for group, name, image in found.images:
        images = result.setdefault(group, {})
        if name in images:
            before = images[name]
            images[_free_name(before.pointer, images)] = before  # guard: equal names hide no image
        images[name] = image
    return result


def list_images(
    resource: JSONObject,
    extractors: Extractors | None = None,
    *,
    default_registry: str = "docker.io",
    mutate_registry: bool = True,
    runtime: Runtime | None = None,
) -> FoundImages:
    """Return every image of a resource, in document order, and why others cannot be read: one hides no other.

    See `find_images` for what is found. Raises ValueSyntaxError where nothing could be looked for.
    """
    # Kyverno: pkg/utils/api ExtractImagesFromResource
    kind = resource.get("kind")
    runtime = runtime or Runtime()
    problems: list[str] = []
    images: dict[tuple[str, str, ImageInfo], None] = {}
    for extractor in _extractors_for(kind if isinstance(kind, str) else "", extractors):
        for place in _places(resource, extractor.fields, runtime.budget, problems):
            try:
                found = _reference(place, extractor, runtime)
                if found is None:
                    continue
                name, steps, text = found
                image = parse_image_at(
                    f"/{'/'.join(steps)}", text, default_registry=default_registry, mutate_registry=mutate_registry
                )
            except ValueSyntaxError as error:
                problems.append(error.message)  # guard: an image that cannot be read hides no other
            else:
                images[extractor.name, name, image.at(steps, place.pull_secrets)] = None
    return FoundImages(tuple(images), tuple(problems))


def _free_name(pointer: str, taken: Container[str]) -> str:
    """Return a name for an image whose own is another's: its pointer, with a number where two are of one field."""
    names = chain((pointer,), (f"{pointer} ({number})" for number in count(2)))
    return next(name for name in names if name not in taken)


def _extractors_for(kind: str, extractors: Mapping[str, tuple[Extractor, ...]] | None) -> tuple[Extractor, ...]:
    if extractors is None or kind not in extractors:
        return BUILTIN_EXTRACTORS.get(kind, ())
    if not extractors[kind]:
        raise ValueSyntaxError(f"no extractors found for {kind}")
    return extractors[kind]


def _places(resource: JSON, fields: tuple[str, ...], budget: Budget, problems: list[str]) -> list[_Place]:
    """Return the objects that hold images, in document order; what has another shape is a problem.

    The budget is charged for each of them.
    """
    places = [_Place(resource)]
    for field in fields:
        children: list[_Place] = []
        for place in places:
            try:
                found = _every_child(place) if field == "*" else [_child(place, field)]
            except ValueSyntaxError as error:
                problems.append(error.message)
                continue
            if field == "*":
                budget.charge_steps(_STEPS_OF_IMAGE * len(found))
            children += found
        places = [child for child in children if child.value is not None]
    found = []
    for place in places:
        try:
            found.append(_with_secrets(place))
        except ValueSyntaxError as error:
            problems.append(error.message)
    return found


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


def _reference(place: _Place, extractor: Extractor, runtime: Runtime) -> tuple[str, tuple[str, ...], str] | None:
    """Return name, path and reference of the image at a place, None for a missing one."""
    steps = (*place.path, *extractor.within, extractor.value)
    pointer = f"/{'/'.join(steps)}"
    holder = place.value
    for field in extractor.within:
        holder = holder.get(field)
        if holder is None:
            return None
        if not isinstance(holder, dict):
            raise ValueSyntaxError("invalid image config")
    name = pointer
    if extractor.key:
        name = place.value.get(extractor.key)
        if not isinstance(name, str):
            raise ValueSyntaxError("invalid key")
    text = holder.get(extractor.value)
    if text is None or (isinstance(text, str) and not text.strip()):
        return None
    if not isinstance(text, str):
        raise ValueSyntaxError(f"invalid image at `{pointer}` (it must be a string)")  # guard: an image is text
    if extractor.expression_text:
        text = _transform(text, extractor, runtime)
    return name, steps, text


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
