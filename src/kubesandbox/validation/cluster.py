"""Namespaces and Events, beside what their schemas require."""

from __future__ import annotations

from typing import Final

from kubesandbox.objects.fielderrors import invalid
from kubesandbox.validation.check import Errors
from pyverno.kube.json import JSON
from pyverno.kube.labelsyntax import label_key_problems

__all__ = ["event", "namespace"]

_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def namespace(body: JSON, path: str, errors: Errors) -> None:
    """Check the finalizers of a Namespace."""
    for name in (body.get("spec") or {}).get("finalizers") or ():
        errors.extend(invalid("spec.finalizers", name, problem) for problem in label_key_problems(name))
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            what = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid("spec.finalizers", name, what))


def event(body: JSON, path: str, errors: Errors) -> None:
    """Check that an Event is in the namespace of its object; those of objects without one are in `default`."""
    field = "regarding" if "regarding" in body else "involvedObject"
    about = (body.get(field) or {}).get("namespace") or ""
    place = (body.get("metadata") or {}).get("namespace") or ""
    if place != (about or "default"):
        errors.append(invalid("involvedObject.namespace", about, "does not match event.namespace"))
