"""Writes what Kubernetes' OpenAPI schemas do not say about its Go types, from the Go modules that declare them.

    python scripts/build_go_types.py [--check] DIRECTORY...

Each DIRECTORY is the root of a module (`k8s.io/api`, `k8s.io/apimachinery`, `k8s.io/apiextensions-apiserver`,
`k8s.io/kube-aggregator`). `src/pyverno/kube/data/go_types.json.xz` holds, for every field of every type that the
schemas know, when it is left out (see `fields_of`) and the name of its type as Go's decoder prints it. Only names and
marks are taken, no text.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
from dataclasses import dataclass
from pathlib import Path

from pyverno.kube.schemas import VERSIONS, schema_set

FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 20}]
TARGET = Path(__file__).resolve().parent.parent / "src" / "pyverno" / "kube" / "data" / "go_types.json.xz"
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
EMPTY = re.compile(r"^type (\w+) struct ?\{ ?\}", re.MULTILINE)
NAMED = re.compile(r"^type (\w+) (=? ?(?:\[\]|map\[\w+\])?[\w.]+)(?: //.*)?$", re.MULTILINE)
FIELD = re.compile(r"^\t(?:\w+[ \t]+)?(\S+)[ \t]+`[^`]*json:\"([^\",]+)(?:,([^\"]*))?\"", re.MULTILINE)
EMBEDDED = re.compile(r"^\t(\*?[\w.]+)[ \t]+`[^`]*json:\"(?:,[^\"]*)?\"", re.MULTILINE)
BARE = re.compile(r"^\t(\*?[\w.]+)$", re.MULTILINE)
SCALARS = frozenset({"string", "bool", "int", "int32", "int64", "uint", "uint8", "float64", "byte"})
SPECIAL = {
    "metav1.Time",
    "metav1.MicroTime",
    "resource.Quantity",
    "intstr.IntOrString",
    "Time",
    "MicroTime",
    "Quantity",
}
ROOTS = {
    "k8s.io/api": "io.k8s.api",
    "k8s.io/apimachinery": "io.k8s.apimachinery",
    "k8s.io/apiextensions-apiserver": "io.k8s.apiextensions-apiserver",
    "k8s.io/kube-aggregator": "io.k8s.kube-aggregator",
}


@dataclass(frozen=True)
class Package:
    name: str
    structs: dict[str, str]
    named: dict[str, str]


def definition_prefix(module: str, directory: Path, root: Path) -> str:
    return ".".join((ROOTS[module], *directory.relative_to(root).parts))


def read_package(directory: Path) -> Package | None:
    text = "\n".join(path.read_text() for path in sorted(directory.glob("*.go")) if not path.name.endswith("_test.go"))
    if not text:
        return None
    text = re.sub(r"^\s*//.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^/\*.*?\*/", "", text, flags=re.DOTALL | re.MULTILINE)
    structs = dict(STRUCT.findall(text)) | dict.fromkeys(EMPTY.findall(text), "")
    named = {name: kind.lstrip("= ") for name, kind in NAMED.findall(text) if kind not in ("struct", "interface")}
    return Package(directory.name, structs, named)


class Types:
    def __init__(self, packages: dict[str, Package]) -> None:
        self.packages = packages
        self.by_short: dict[str, dict[str, str]] = {}

    def find(self, package: Package, name: str, imports: dict[str, str]) -> tuple[Package, str] | None:
        if "." not in name:
            alias_of = package.named.get(name, "")
            return self.find(package, alias_of, imports) if re.fullmatch(r"\w+\.\w+", alias_of) else (package, name)
        alias, _, bare = name.rpartition(".")
        target = self.packages.get(imports.get(alias, ""))
        return (target, bare) if target else None

    def kind(self, package: Package, name: str, imports: dict[str, str]) -> str:
        """`struct`, `list`, `map`, `scalar` or `other` for the name of a type."""
        if name in SPECIAL or name in ("resource.Quantity", "intstr.IntOrString", "runtime.RawExtension"):
            return "other"
        if name.startswith("[]"):
            return "list"
        if name.startswith("map["):
            return "map"
        if name in SCALARS:
            return "scalar"
        found = self.find(package, name, imports)
        if found is None:
            return "scalar" if name.endswith("UID") else "other"
        where, bare = found
        if bare in where.structs:
            return "struct"
        if bare in where.named:
            return self.kind(where, where.named[bare], imports)
        return "other"


ALIASES = {
    "metav1": "io.k8s.apimachinery.pkg.apis.meta.v1",
    "v1": "io.k8s.api.core.v1",
    "corev1": "io.k8s.api.core.v1",
    "core": "io.k8s.api.core.v1",
    "api": "io.k8s.api.core.v1",
    "apiv1": "io.k8s.api.core.v1",
    "types": "io.k8s.apimachinery.pkg.types",
    "authenticationv1": "io.k8s.api.authentication.v1",
    "batchv1": "io.k8s.api.batch.v1",
    "runtime": "io.k8s.apimachinery.pkg.runtime",
    "rbacv1": "io.k8s.api.rbac.v1",
}


def imports_of(directory: Path, prefix: str) -> dict[str, str]:
    found = dict(ALIASES)
    text = "\n".join(path.read_text() for path in directory.glob("types*.go"))
    for alias, path in re.findall(r'^\s*(\w+) "(k8s\.io/[\w./-]+)"', text, re.MULTILINE):
        for module, start in ROOTS.items():
            if path.startswith(module + "/"):
                found[alias] = ".".join((start, *path[len(module) + 1 :].split("/")))
    return found


def go_name(type_name: str, package: Package, types: Types, imports: dict[str, str]) -> str:
    """A type as `reflect` prints it: package and name."""
    if type_name.startswith("*"):
        return go_name(type_name[1:], package, types, imports)
    if type_name.startswith("[]"):
        return "[]" + go_element(type_name[2:], package, types, imports)
    if type_name.startswith("map["):
        key, _, value = type_name[4:].partition("]")
        return f"map[{go_element(key, package, types, imports)}]{go_element(value, package, types, imports)}"
    return go_element(type_name, package, types, imports)


def go_element(type_name: str, package: Package, types: Types, imports: dict[str, str]) -> str:
    if type_name.startswith("*"):
        return "*" + go_element(type_name[1:], package, types, imports)
    if type_name.startswith(("[]", "map[")):
        return go_name(type_name, package, types, imports)
    if type_name in SCALARS:
        return {"byte": "uint8"}.get(type_name, type_name)
    if "." in type_name:
        alias, _, bare = type_name.rpartition(".")
        return f"{imports.get(alias, alias).rpartition('.')[2]}.{bare}"
    return f"{package.name}.{type_name}"


def fields_of(package: Package, body: str, types: Types, imports: dict[str, str]) -> dict[str, list[str]]:
    """For each JSON name: when it is left out, and its type.

    `zero`: left out when zero; `nil`: a pointer, left out when unset; `null`: a pointer, null when unset; `never`:
    always written; `struct`: a struct that is always written, however empty.
    """
    fields: dict[str, list[str]] = {}
    for embedded in (*EMBEDDED.findall(body), *BARE.findall(body)):
        if embedded.endswith("TypeMeta"):
            continue
        found = types.find(package, embedded.lstrip("*"), imports)
        if found and found[1] in found[0].structs:
            inner = fields_of(found[0], found[0].structs[found[1]], types, imports)
            # the decoder names the embedded struct in paths unless the field is inlined without a tag
            fields.update(
                {name: [mark, kind, ".".join((found[1], *rest))] for name, (mark, kind, *rest) in inner.items()}
            )
    for written, json_name, options in FIELD.findall(body):
        if json_name == "-":
            continue
        pointer = written.startswith("*")
        kind = types.kind(package, written.lstrip("*"), imports)
        if pointer:
            mark = "nil" if "omitempty" in options or "omitzero" in options else "null"
        elif kind == "struct":
            mark = "nil" if "omitzero" in options else "struct"
        elif "omitzero" in options:
            mark = "zero"
        elif kind == "other":
            mark = "other"
        else:
            mark = "zero" if "omitempty" in options else "never"
        fields[json_name] = [mark, go_name(written, package, types, imports)]
    return fields


def build(roots: list[Path]) -> bytes:
    packages: dict[str, Package] = {}
    directories: dict[str, Path] = {}
    for root in roots:
        module = re.search(r"^module (\S+)", (root / "go.mod").read_text(), re.MULTILINE)
        if module is None:
            raise SystemExit(f"{root} is no Go module")
        for path in sorted({file.parent for file in root.rglob("*.go")}):
            package = read_package(path)
            if package is not None:
                prefix = definition_prefix(module[1], path, root)
                packages[prefix], directories[prefix] = package, path
    types = Types(packages)
    known = {name for version in VERSIONS for name in schema_set(version).definitions}
    table: dict[str, dict[str, list[str]]] = {}
    for prefix, package in packages.items():
        if not re.search(r"\.(v\d\w*|version|runtime|resource)$", prefix):
            continue
        imports = imports_of(directories[prefix], prefix)
        for name, body in package.structs.items():
            fields = fields_of(package, body, types, imports)
            if fields and f"{prefix}.{name}" in known:
                table[f"{prefix}.{name}"] = fields
    text = json.dumps(table, separators=(",", ":"), sort_keys=True)
    return lzma.compress(text.encode(), format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=FILTERS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    parser.add_argument("directories", nargs="+", type=Path)
    arguments = parser.parse_args()
    content = build(arguments.directories)
    if arguments.check:
        current = TARGET.is_file() and TARGET.read_bytes() == content
        print("go types are current" if current else "go_types.json.xz is not what these modules give")
        return 0 if current else 1
    TARGET.write_bytes(content)
    print(f"{TARGET.name}: {len(content)} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
