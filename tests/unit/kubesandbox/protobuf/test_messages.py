"""The table of messages is consistent."""

from __future__ import annotations

import pytest

from kubesandbox.protobuf.messages import Kind, message, message_of
from kubesandbox.types.resources import ResourceType, builtin_table
from pyverno.kube.gvk import GVK

WITHOUT_PROTOBUF = ("apiextensions.k8s.io", "apiregistration.k8s.io")
TYPES = [item for item in builtin_table("1.35") if item.group not in WITHOUT_PROTOBUF]


def reached(name: str, seen: set[str]) -> None:
    """Follow all messages below one."""
    if name in seen:
        return
    seen.add(name)
    for field in message(name).values():
        kind: Kind | None = field.kind
        while kind is not None:
            if kind.message:
                reached(kind.message, seen)
            kind = kind.item


@pytest.mark.parametrize("type", TYPES, ids=lambda type: f"{type.group}-{type.version}-{type.kind}")
def test_every_built_in_kind_has_its_message(type: ResourceType) -> None:
    """Every message that it refers to is in the table, too."""
    name = message_of(type.gvk)
    assert name is not None
    seen: set[str] = set()
    reached(name, seen)
    assert seen


@pytest.mark.parametrize(
    "kind",
    [
        GVK("autoscaling", "v1", "Scale"),
        GVK("policy", "v1", "Eviction"),
        GVK("", "v1", "Binding"),
        GVK("authentication.k8s.io", "v1", "TokenRequest"),
        GVK("batch", "v1", "DeleteOptions"),
    ],
)
def test_subresources_and_options_have_theirs(kind: GVK) -> None:
    """Subresources and options, which clients send beside objects, have messages."""
    assert None is not message_of(kind)


def test_custom_resources_have_none() -> None:
    """Custom resources have no protobuf form."""
    assert None is message_of(GVK("x.io", "v1", "Widget"))
