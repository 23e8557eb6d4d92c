"""Writes conversions: to a folder with certificates, into their files, or as a difference; and checks such a folder."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson

from pyverno.cli.migrate.certificate import digest
from pyverno.cli.migrate.comments import split_documents
from pyverno.cli.migrate.conversion import Conversion
from pyverno.compiler.migration.policy import SOURCE_DIGEST, digest_of
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import encode_indent
from pyverno.kube.yaml.documents import load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.files import read_file

__all__ = ["check_folder", "print_diff", "write_folder", "write_in_place"]


def write_folder(found: Sequence[Conversion], folder: Path) -> None:
    """Write each conversion as `NAME.yaml`, and its certificate as `NAME.certificate.json`."""
    names: set[str] = set()
    for each in found:
        if not each.text:
            continue
        if each.name in names:
            raise UsageError(f"two policies are called `{each.name}`: convert them into folders of their own")
        names.add(each.name)
        _write(folder / f"{each.name}.yaml", each.text)
        if each.certificate is not None:
            _write(folder / f"{each.name}.certificate.json", encode_indent(each.certificate) + "\n")


def write_in_place(found: Sequence[Conversion]) -> None:
    """Replace the converted documents of each file; the others stay as they are."""
    by_file: dict[str, list[Conversion]] = {}
    for each in found:
        by_file.setdefault(each.document.file, []).append(each)
    for file, conversions in by_file.items():
        texts = {each.document.index: each.text for each in conversions if each.text}
        if not texts:
            continue
        text = read_file(Path(file)).decode()
        parts = split_documents(text)
        _write(Path(file), "---\n".join(texts.get(index, part) for index, part in enumerate(parts)))


def print_diff(conversion: Conversion) -> str:
    """Return the difference between a policy and its conversion, as `diff -u` prints it."""
    if not conversion.text:
        return ""
    before = dump_yaml(conversion.source, sort_keys=False).splitlines(keepends=True)
    after = conversion.text.splitlines(keepends=True)
    name = conversion.document.file
    return "".join(difflib.unified_diff(before, after, name, f"{name} (converted)"))


def check_folder(found: Sequence[Conversion], folder: Path) -> int:
    """Check that a folder holds the current conversions and certificates of the policies; return the exit code."""
    problems = [problem for each in found for problem in _problems(each, folder)]
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    if not problems:
        what = (
            "1 policy is converted as it is" if len(found) == 1 else f"{len(found)} policies are converted as they are"
        )
        sys.stdout.write(f"{what} now, and tested\n")
    return 1 if problems else 0


def _problems(conversion: Conversion, folder: Path) -> Sequence[str]:
    name = conversion.name
    if not conversion.documents:
        return [f"{name}: cannot be converted"]
    path, record_path = folder / f"{name}.yaml", folder / f"{name}.certificate.json"
    if not path.exists():
        return [f"{name}: {path} is missing: convert again"]
    documents = [each.value for each in load_documents(read_file(path), file=str(path))]
    marked = [each for each in documents if SOURCE_DIGEST in (each.get("metadata", {}).get("annotations") or {})]
    expected = digest_of(conversion.source)
    if any(each["metadata"]["annotations"][SOURCE_DIGEST] != expected for each in marked) or not marked:
        return [f"{name}: the policy has changed since it was converted: convert again"]
    try:
        record = orjson.loads(read_file(record_path))
        tested, result, void = record["new"]["sha256"], record["result"], record["saysNothingBecause"]
    except (PyvernoError, orjson.JSONDecodeError, KeyError, TypeError):
        return [f"{name}: {record_path} is no certificate: convert again"]
    if tested != digest(documents):
        return [f"{name}: {path} has changed since it was tested: convert again, or test it with pyverno equivalent"]
    if result != "no difference found":
        return [f"{name}: the test found a difference"]
    return [f"{name}: the certificate is void: {'; '.join(void)}"] if void else []


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error
