"""Writes the Kubernetes schemas that pyverno ships, from the PyPI package `kubernetes-validate` (build time only).

    python scripts/build_schemas.py [--check] [--wheel FILE]

`src/pyverno/kube/data/schemas.json.xz` holds the complete schemas of all versions, without descriptions;
`merge_keys.json` holds the list merge keys of all kinds (each from the newest version that has it), which is all that
patching needs; `fields.txt` holds the names of the fields of all kinds in any version, which linting needs;
`descriptions.json.xz` holds the texts that explain types and fields. The same package always gives the same bytes.
`--check` writes nothing and fails when the files differ.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

PACKAGE = "kubernetes-validate==1.37.0"
VERSIONS = tuple(f"1.{minor}" for minor in range(25, 38))
DATA = Path(__file__).resolve().parent.parent / "src" / "pyverno" / "kube" / "data"
REF_PREFIX = "#/$defs/"
# Presets are not reproducible across liblzma versions in theory; a spelled-out filter chain is.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 24}]

Definitions = dict[str, dict[str, Any]]


def download(directory: str) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", directory, PACKAGE]
    subprocess.run(command, check=True)
    return next(Path(directory).glob("*.whl"))


def read_definitions(wheel: Path) -> dict[str, Definitions]:
    found: dict[str, Definitions] = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            match = re.fullmatch(r".*/v(1\.\d+)\.\d+-local/_definitions\.json", name)
            if match and match[1] in VERSIONS:
                found[match[1]] = json.loads(archive.read(name))["$defs"]
    missing = [version for version in VERSIONS if version not in found]
    if missing:
        raise SystemExit(f"{wheel.name} lacks Kubernetes {', '.join(missing)}")
    return found


def compact(schema: Any, *, names: bool = False) -> Any:
    """A schema without descriptions; `names` marks a level whose keys are field names and stay whatever they are."""
    if isinstance(schema, list):
        return [compact(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    slim: dict[str, Any] = {}
    for key, value in sorted(schema.items()):
        if key == "description" and not names:
            continue
        if key == "$ref" and not names:
            slim[key] = value.removeprefix(REF_PREFIX)
        else:
            slim[key] = compact(value, names=key == "properties" and not names)
    return slim


def build_schemas(versions: dict[str, Definitions]) -> bytes:
    """Every distinct definition once, and for each version which one is under which name."""
    bodies: dict[str, int] = {}
    index = {
        version: {
            name: bodies.setdefault(dump(compact(definition)), len(bodies))
            for name, definition in sorted(versions[version].items())
        }
        for version in VERSIONS
    }
    text = f'{{"definitions":[{",".join(bodies)}],"versions":{dump(index)}}}'
    return lzma.compress(text.encode(), format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=FILTERS)


def texts(definition: dict[str, Any]) -> dict[str, str]:
    """The description of a type under the empty name, and those of its fields."""
    found = {"": definition.get("description", "")}
    for name, field in sorted(definition.get("properties", {}).items()):
        found[name] = field.get("description", "")
    return {name: text for name, text in found.items() if text}


def build_descriptions(versions: dict[str, Definitions]) -> bytes:
    """Every distinct set of texts once, and for each version which one belongs to which definition."""
    bodies: dict[str, int] = {}
    index: dict[str, dict[str, int]] = {version: {} for version in VERSIONS}
    # texts of one definition are next to each other in all versions, which packs best
    for name in sorted({name for version in VERSIONS for name in versions[version]}):
        for version in VERSIONS:
            found = texts(versions[version].get(name, {}))
            if found:
                index[version][name] = bodies.setdefault(dump(found), len(bodies))
    text = f'{{"texts":[{",".join(bodies)}],"versions":{dump(index)}}}'
    return lzma.compress(text.encode(), format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=FILTERS)


def reference(schema: dict[str, Any]) -> str:
    for part in (schema, *schema.get("oneOf", ()), *schema.get("anyOf", ()), *schema.get("allOf", ())):
        if "$ref" in part:
            return str(part["$ref"]).removeprefix(REF_PREFIX)
    return ""


def child_type(schema: dict[str, Any]) -> str:
    """The definition that a field, or the elements of a list or map, refer to."""
    for part in (schema, schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict) and reference(part):
            return reference(part)
    return ""


def merge_fields(definition: dict[str, Any]) -> dict[str, dict[str, Any]]:
    fields: dict[str, dict[str, Any]] = {}
    for name, schema in sorted(definition.get("properties", {}).items()):
        entry: dict[str, Any] = {}
        if child_type(schema):
            entry["type"] = child_type(schema)
        if "x-kubernetes-patch-strategy" in schema:
            entry["strategy"] = schema["x-kubernetes-patch-strategy"]
            single = schema.get("x-kubernetes-patch-merge-key")
            keys = schema.get("x-kubernetes-list-map-keys") or ([single] if single else [])
            if keys:
                entry["keys"] = keys
        if entry:
            fields[name] = entry
    return fields


def build_merge_keys(versions: dict[str, Definitions]) -> bytes:
    """Only types from which a field with a patch strategy can be reached; newer versions replace older ones."""
    definitions = {name: body for version in VERSIONS for name, body in versions[version].items()}
    types = {name: merge_fields(definition) for name, definition in sorted(definitions.items())}
    useful: set[str] = set()
    while True:
        found = {
            name
            for name, fields in types.items()
            if any("strategy" in field or field.get("type") in useful for field in fields.values())
        }
        if found == useful:
            break
        useful = found
    slim = {
        name: {
            field: {key: value for key, value in entry.items() if key != "type" or value in useful}
            for field, entry in types[name].items()
            if "strategy" in entry or entry.get("type") in useful
        }
        for name in sorted(useful)
    }
    kinds = {
        "/".join((kind["group"], kind["version"], kind["kind"])): name
        for name in sorted(useful)
        for kind in definitions[name].get("x-kubernetes-group-version-kind", ())
        if len(definitions[name]["x-kubernetes-group-version-kind"]) == 1
    }
    return (dump({"kinds": kinds, "types": slim}) + "\n").encode()


def field_type(schema: dict[str, Any]) -> str:
    """The type of a field as `fields.txt` writes it: a definition, `*` for anything, `[` before that of elements."""
    if isinstance(schema.get("items"), dict):
        return "[" + field_type(schema["items"])
    if reference(schema):
        return reference(schema)
    declared = schema.get("type")
    kinds = {declared} if isinstance(declared, str) else set(declared or ())
    return "*" if "object" in kinds or not kinds else ""


def build_fields(versions: dict[str, Definitions]) -> bytes:
    """A line for each kind with the number of its type, a blank line, and a line for each type with its fields.

    A type has the fields of all versions; the newest version gives the type of a field (see `field_type`).
    """
    fields: dict[str, dict[str, str]] = {}
    kinds: dict[str, str] = {}
    for version in VERSIONS:
        for name, body in versions[version].items():
            if body.get("properties"):
                found = {field: field_type(schema) for field, schema in body["properties"].items()}
                fields.setdefault(name, {}).update(found)
            listed = body.get("x-kubernetes-group-version-kind", ())
            if len(listed) == 1:
                kinds["/".join((listed[0]["group"], listed[0]["version"], listed[0]["kind"]))] = name
    names = sorted(fields)
    numbers = {name: number for number, name in enumerate(names)}

    def number(declared: str) -> int | str:
        bare = declared.lstrip("[")
        # a definition without fields is a text, a number, or anything
        inner = numbers.get(bare, "*" if bare.endswith((".JSON", ".RawExtension", ".FieldsV1", "*")) else "")
        return inner if bare == declared else f"[{inner}"

    def line(fields: dict[str, str]) -> str:
        found = ((field, number(declared)) for field, declared in sorted(fields.items()))
        return " ".join(f"{field}={written}" if written != "" else field for field, written in found)

    known = [f"{kind} {numbers[name]}" for kind, name in sorted(kinds.items()) if name in numbers]
    return "\n".join((*known, "", *(line(fields[name]) for name in names), "")).encode()


def dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    parser.add_argument("--wheel", type=Path, help="use this wheel instead of downloading it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        versions = read_definitions(arguments.wheel or download(directory))
    files = {
        "schemas.json.xz": build_schemas(versions),
        "merge_keys.json": build_merge_keys(versions),
        "fields.txt": build_fields(versions),
        "descriptions.json.xz": build_descriptions(versions),
    }
    stale = [name for name, content in files.items() if not is_current(DATA / name, content)]
    if arguments.check:
        print("\n".join(f"{name} is not what {PACKAGE} gives" for name in stale) or "schemas are current")
        return 1 if stale else 0
    DATA.mkdir(exist_ok=True)
    for name, content in files.items():
        (DATA / name).write_bytes(content)
        print(f"{name}: {len(content)} bytes")
    return 0


def is_current(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


if __name__ == "__main__":
    raise SystemExit(main())
