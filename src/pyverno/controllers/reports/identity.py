"""The identity of an object in reports: its resource whatever the version, its namespace and its uid."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ObjectId"]


class ObjectId(NamedTuple):
    """One object; `uid` is `name:NAME` where a report came before the object had a uid.

    >>> str(ObjectId("apps", "deployments", "shop", "u-1"))
    'deployments.apps shop/u-1'
    """

    group: str
    resource: str
    namespace: str
    uid: str

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{resource} {self.namespace}/{self.uid}" if self.namespace else f"{resource} {self.uid}"
