"""The page of policy kinds and their fields, read from the tables that decode them."""

from __future__ import annotations

from typing import Any

from pyverno.policy.kinds import POLICY_KINDS, PolicyKind
from pyverno.policy.schema import Choice, Field, ListOf, MapOf, Record, boolean, integer, text
from scripts.reference_pages.markdown import anchor, cell, code, page, table

__all__ = ["policy_kinds"]

_PLAIN = {text: "string", boolean: "boolean", integer: "integer"}


def policy_kinds() -> str:
    """Return a table of all kinds, then the fields of every record that the supported ones are made of."""
    rows = (
        (
            code(each.kind),
            code(each.group),
            ", ".join(map(code, each.versions)),
            "namespace" if each.namespaced else "cluster",
            cell(each.replacement) or "-",
        )
        for each in POLICY_KINDS
    )
    head = table(("kind", "group", "versions (stored first)", "scope", "Kyverno's replacement"), rows)
    fields = _Fields()
    for kind in POLICY_KINDS:
        fields.add_kind(kind)
    return page(
        "Policy kinds and fields",
        "Decoding is strict: a field that is not listed here is an error with its place in the file.",
        head,
        "## Fields",
        "A record that several fields share is listed once. `[]` is a list, `{}` an object with free keys.",
        *fields.sections(),
    )


class _Fields:
    """Finds the records below the supported kinds; each gets the name of the first place where it is."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._records: dict[str, Record] = {}

    def add_kind(self, kind: PolicyKind) -> None:
        for version in kind.versions:
            shape = kind.decoder(version)
            spec = shape.fields.get("spec") if isinstance(shape, Record) else None
            if spec is None or not isinstance(spec.shape, Record):
                continue
            again = id(spec.shape) in self._names
            self._visit(spec.shape, f"{kind.kind} {version} spec")
            if again:
                self._records.setdefault(f"{kind.kind} {version} spec", spec.shape)

    def sections(self) -> list[str]:
        return [self._section(name, record) for name, record in self._records.items()]

    def _visit(self, shape: Any, name: str) -> None:
        if isinstance(shape, ListOf | MapOf):
            self._visit(shape.item, name + ("[]" if isinstance(shape, ListOf) else "{}"))
            return
        if not isinstance(shape, Record) or id(shape) in self._names:
            return
        self._names[id(shape)] = name
        self._records[name] = shape
        for key, row in shape.fields.items():
            self._visit(row.shape, f"{name}.{key}")

    def _section(self, name: str, record: Record) -> str:
        known = self._names[id(record)]
        if known != name:
            return f"### {name}\n\nAs [{known}](#{anchor(known)})."
        rows = [(code(key), self._type(row.shape), _notes(row)) for key, row in record.fields.items()]
        return f"### {name}\n\n" + table(("field", "type", "notes"), rows)

    def _type(self, shape: Any) -> str:
        match shape:
            case ListOf(item=item):
                return f"list of {self._type(item)}"
            case MapOf(item=item):
                return f"object of {self._type(item)}"
            case Record():
                name = self._names[id(shape)]
                return f"[{cell(name)}](#{anchor(name)})"
            case Choice(members=members):
                return ", ".join(map(code, members))
        return _PLAIN.get(shape, "any value")


def _notes(row: Field) -> str:
    notes = ["required"] if row.required else []
    if row.deprecated:
        notes.append(f"deprecated: {row.deprecated}")
    return cell("; ".join(notes))
