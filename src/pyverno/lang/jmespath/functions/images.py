"""Functions on container image references."""

from __future__ import annotations

from typing import Final

from pyverno.errors import ValueSyntaxError
from pyverno.kube.imageref.reference import parse_reference
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.cost import Cost
from pyverno.lang.jmespath.function import STRING, function, unreadable
from pyverno.lang.runtime import Runtime

__all__ = ["FUNCTIONS"]


@function(
    "image_normalize",
    STRING,
    returns=STRING,
    cost=Cost(per_step=4, most=4096),
    note="writes an image reference with its registry and tag",
)
def image_normalize(runtime: Runtime, image: str) -> JSON:
    """Write a reference in full: with the default registry, and the tag `latest` when it has no tag and no digest.

    A digest takes the place of the tag; no `library/` is added. The ConfigMap sets the default registry.

    >>> image_normalize('nginx')
    "docker.io/nginx:latest"
    """
    try:
        settings = runtime.settings
        return str(parse_reference(image, settings.default_registry, settings.mutates_registry))
    except ValueSyntaxError as error:
        prefix = "JMESPath function 'image_normalize': "
        raise unreadable("image_normalize", 1, image, "an image reference", prefix + error.message) from None


FUNCTIONS: Final = (image_normalize,)
