"""Functions on container image references.

This module must never ask a registry.
"""

from __future__ import annotations

from typing import Final

from pyverno.errors import ValueSyntaxError
from pyverno.kube.imageref import parse_reference
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.function import STRING, failure, function
from pyverno.lang.runtime import Runtime

__all__ = ["FUNCTIONS"]


@function("image_normalize", STRING, returns=STRING, note="writes an image reference with its registry and tag")
def image_normalize(_runtime: Runtime, image: str) -> JSON:
    """Write a reference in full: with the default registry, and the tag `latest` when it has no tag and no digest.

    A digest takes the place of the tag; no `library/` is added.

    >>> image_normalize('nginx')
    "docker.io/nginx:latest"
    """
    try:
        return str(parse_reference(image))
    except ValueSyntaxError as error:
        raise failure("image_normalize", error.message) from error


FUNCTIONS: Final = (image_normalize,)
