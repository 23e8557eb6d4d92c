"""What every written document of a policy kind has in common: who it is, and where it was read."""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.kube.json import JSONObject
from pyverno.policy.schema import Source
from pyverno.value import dataclass, field

__all__ = ["PolicyDocument"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDocument:
    """The head of a decoded document; `document` locates everything in it, `raw` is what was written."""

    kind: str
    api_version: str
    name: str
    document: Source
    namespace: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""
    raw: JSONObject = field(default_factory=dict)
