"""Writes conversions: to a folder with certificates, into their files, or as a difference; and checks such a folder."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import orjson

from pyverno.cli.errors import bug_text, report_error
from pyverno.cli.migrate.certificate import digest
from pyverno.cli.migrate.comments import split_documents
from pyverno.cli.migrate.conversion import Conversion
from pyverno.cli.terminal import STDOUT
from pyverno.compiler.migration.policy import SOURCE_DIGEST, digest_of
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.json import encode_indent
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.kube.yaml.writer import dump_yaml
from pyverno.offline.files import read_file
from pyverno.offline.rewriting import decode_lines, encode_like, replace_file
from pyverno.sinks.filenames import file_names, inside
from pyverno.sinks.records import json_text
from pyverno.value import replace

__all__ = ["Bugs", "check_folder", "print_diff", "with_stems", "write_folder", "write_in_place"]


_UNUSABLE: Final = 2

Made = TypeVar("Made")


class Bugs:
    """Bugs of a run: each is an error with its policy, and the other policies go on."""

    def __init__(self) -> None:
        self.code = 0

    def report(self, text: str, document: Document) -> None:
        """Report one bug."""
        self.code = _UNUSABLE
        report_error(UsageError(text, location=document.location()))

    def each(self, found: Iterable[Conversion], make: Callable[[Conversion], Made]) -> Iterator[Made]:
        """Yield what is made of each conversion without a bug in it."""
        for conversion in found:
            try:
                made = make(conversion)
            except (PyvernoError, OSError):
                raise
            except Exception as error:  # a bug in one conversion costs that one
                self.report(f"the conversion cannot be written: {bug_text(error)}", conversion.document)
            else:
                yield made


def with_stems(found: Sequence[Conversion], bugs: Bugs) -> list[Conversion]:
    """Return the conversions with names for their files: policies that share a name add kind and namespace to it."""
    counts = Counter(bugs.each(found, lambda each: each.name))
    named = [*bugs.each(found, lambda each: (each, each.name if counts[each.name] == 1 else _long_stem(each)))]
    stems = file_names(stem for _, stem in named)
    return [replace(each, own_stem=stem) for (each, _), stem in zip(named, stems, strict=True)]


def _long_stem(conversion: Conversion) -> str:
    source = conversion.source
    namespace = (source.get("metadata") or {}).get("namespace")
    parts = [conversion.name, str(source.get("kind")).lower(), *([str(namespace)] if namespace else [])]
    return ".".join(parts)


def write_folder(found: Sequence[Conversion], folder: Path, bugs: Bugs) -> None:
    """Write each conversion as `NAME.yaml`, and its certificate as `NAME.certificate.json`."""

    def write(each: Conversion) -> None:
        if each.text:
            _write(inside(folder, f"{each.stem}.yaml"), each.text.encode())
        if each.text and each.certificate is not None:
            _write(
                inside(folder, f"{each.stem}.certificate.json"),
                (json_text(encode_indent(each.certificate)) + "\n").encode(),
            )

    for _ in bugs.each(found, write):
        pass


def write_in_place(found: Sequence[Conversion]) -> None:
    """Replace the converted documents of each file; the others stay as they are."""
    by_file: dict[str, list[Conversion]] = {}
    for each in found:
        by_file.setdefault(each.document.file, []).append(each)
    contents: dict[Path, bytes] = {}
    for file, conversions in by_file.items():
        texts = {each.document.index: each.text for each in conversions if each.text}
        if texts:
            old = read_file(Path(file))
            parts = split_documents(_decode(old, file))
            changed = "---\n".join(texts.get(index, part) for index, part in enumerate(parts))
            contents[Path(file)] = encode_like(changed, old)
    for path, content in contents.items():
        _write(path, content)


def _decode(content: bytes, file: str) -> str:
    try:
        return decode_lines(content)
    except UnicodeDecodeError as error:
        raise UsageError(f"`{file}` is not in UTF-8: convert it with `--write`") from error


def print_diff(conversion: Conversion) -> str:
    """Return the difference between a policy and its conversion, as `diff -u` prints it."""
    if not conversion.text:
        return ""
    before = dump_yaml(conversion.source, sort_keys=False).splitlines(keepends=True)
    after = conversion.text.splitlines(keepends=True)
    name = conversion.document.file
    return "".join(difflib.unified_diff(before, after, name, f"{name} (converted)"))


def check_folder(found: Sequence[Conversion], folder: Path, bugs: Bugs) -> int:
    """Check that a folder holds the current conversions and certificates of the policies; return the exit code."""
    problems = [problem for own in bugs.each(found, lambda each: _problems(each, folder)) for problem in own]
    for problem in problems:
        STDOUT.write(f"{problem}\n")
    if not problems and not bugs.code:
        what = (
            "1 policy is converted as it is" if len(found) == 1 else f"{len(found)} policies are converted as they are"
        )
        STDOUT.write(f"{what} now, and tested\n")
    return 1 if problems else 0


def _problems(conversion: Conversion, folder: Path) -> Sequence[str]:
    name = conversion.name
    if not conversion.documents:
        return [f"{name}: cannot be converted"]
    path, record_path = folder / f"{conversion.stem}.yaml", folder / f"{conversion.stem}.certificate.json"
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


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error
    replace_file(path, content)
