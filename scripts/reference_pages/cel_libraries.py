"""The page of CEL libraries."""

from __future__ import annotations

from collections.abc import Iterable

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.lang.cel import Environment
from pyverno.lang.cel.declarations import Declaration, Library
from pyverno.lang.cel.listing import Listed, listed_functions
from pyverno.lang.cel.presets import authz_environment, kubernetes_environment
from pyverno.policy.kinds import POLICY_KINDS, Family
from scripts.reference_pages.markdown import cell, code, page, table

__all__ = ["cel_libraries"]

_INTRO = """\
The functions of CEL expressions, by library. "Since" is the version of Kubernetes, or of Kyverno for its own libraries,
that introduced the library. Admission policies of Kubernetes have the libraries of the Kubernetes version; the kinds of
policies.kyverno.io have those and Kyverno's. A call costs 1 unit unless its cost grows with the size of what it reads
or makes. `pyverno cel functions` prints the functions of an environment, `pyverno cel` tries an expression."""


def cel_libraries() -> str:
    """Return one section per library: its functions with signatures, cost, documentation and examples."""
    kinds = [row.kind for row in POLICY_KINDS if row.family is Family.CEL]
    environments = (
        kubernetes_environment(mutation=True),
        *(environment_of_kind(kind) for kind in kinds),
        authz_environment("Envoy"),
        authz_environment("HTTP"),
    )
    libraries: dict[str, Library] = {}
    functions: dict[tuple[str, str], Listed] = {}
    for environment in environments:
        libraries |= {each.name: libraries.get(each.name, each) for each in environment.libraries}
        for listed in listed_functions(environment):
            functions.setdefault((listed.library, listed.name), listed)
    costs = _costs(environments)
    blocks = [_INTRO, table(("library", "since", "functions for"), map(_row, libraries.values()))]
    for name, library in libraries.items():
        found = sorted((each for key, each in functions.items() if key[0] == name), key=lambda each: each.name)
        if found:
            since = f" Since {library.introduced}." if library.introduced else ""
            blocks += [f"## {name}", f"{library.doc}{since}", *(_section(each, costs) for each in found)]
    return page("CEL libraries", *blocks)


def _costs(environments: Iterable[Environment]) -> set[str]:
    """Return the names of the functions whose cost grows with their operands."""
    return {
        declaration.name
        for environment in environments
        for library in environment.libraries
        for declaration in library.declarations
        if _grows(declaration)
    }


def _grows(declaration: Declaration) -> bool:
    return any(overload.cost is not None for overload in declaration.overloads)


def _row(library: Library) -> tuple[str, str, str]:
    return code(library.name), library.introduced, cell(library.doc)


def _section(each: Listed, costs: set[str]) -> str:
    signatures = "\n".join(each.signatures)
    note = each.note.replace("<", "&lt;")
    cost = "The cost grows with the operands." if each.name in costs else ""
    parts = [f"### {each.name}", f"```\n{signatures}\n```", " ".join(part for part in (note, cost) if part)]
    if each.examples:
        shown = "\n".join(each.examples)
        parts.append(f"```\n{shown}\n```")
    return "\n\n".join(part for part in parts if part)
