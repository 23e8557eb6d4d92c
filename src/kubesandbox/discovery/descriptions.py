"""The texts that explain Kubernetes' types and fields, read from the package's data on request.

Files are made by `scripts/build_schemas.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import orjson

__all__ = ["descriptions"]

_NONE: Final[Mapping[str, str]] = MappingProxyType({})


@cache
def _archive() -> Any:
    import lzma
    import pkgutil

    packed = pkgutil.get_data("pyverno.kube", "data/descriptions.json.xz")
    if packed is None:
        raise FileNotFoundError("descriptions.json.xz")
    return orjson.loads(lzma.decompress(packed))


def descriptions(version: str, definition: str) -> Mapping[str, str]:
    """Return the texts of a definition: its own under the empty name, and those of its fields.

    >>> descriptions("1.35", "io.k8s.api.apps.v1.Deployment")[""]
    'Deployment enables declarative updates for Pods and ReplicaSets.'
    """
    archive = _archive()
    index = archive["versions"].get(version, {}).get(definition)
    return _NONE if index is None else archive["texts"][index]
