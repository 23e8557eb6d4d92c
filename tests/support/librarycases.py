"""Worked conversions of our own library: each ClusterPolicy, what it becomes, the certificate of the comparison."""

from __future__ import annotations

from pathlib import Path

from pyverno.cli.equivalent.admission import admission_of
from pyverno.cli.migrate.certificate import CERTIFICATE, Settings
from pyverno.cli.migrate.conversion import Conversion, convert_document
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.documents import expand_lists, load_documents

__all__ = [
    "OBJECTS",
    "POLICIES",
    "certificate_path",
    "control_of",
    "conversions",
    "converted_path",
    "without_certificate",
]

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "policies"
CASES = ROOT / "tests" / "cases" / "migration" / "library"
POLICIES = sorted(path for path in LIBRARY.rglob("clusterpolicy.yaml") if "cel" not in path.parts)
OBJECTS = 2000
_BOOK = SchemaBook()
_ADMIT = admission_of("1.35")


def control_of(policy: Path) -> str:
    """Return the name of a control of the library, such as `best-practices/require-labels`."""
    return str(policy.parent.relative_to(LIBRARY))


def converted_path(policy: Path) -> Path:
    """Return the file with what a policy becomes."""
    return CASES / f"{control_of(policy)}.yaml"


def certificate_path(policy: Path) -> Path:
    """Return the file with the record of the comparison."""
    return CASES / f"{control_of(policy)}.certificate.json"


def conversions(policy: Path, *, is_tested: bool) -> list[Conversion]:
    """Convert the documents of a file; the objects of its cases come first."""
    settings = Settings(OBJECTS, 1, "1.35", _ADMIT, _examples(policy))
    text = policy.read_text(encoding="utf-8")
    return [
        convert_document(each, _BOOK, settings, selected=lambda _: True, is_tested=is_tested, text=text)
        for each in load_documents(text, file=str(policy.relative_to(ROOT)))
    ]


def without_certificate(text: str) -> str:
    """Return a converted policy without the annotation that the comparison leaves, which is one line."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(f"    {CERTIFICATE}: "))


def _examples(policy: Path) -> tuple[JSONObject, ...]:
    """Return the objects of the cases of a policy."""
    files = [path for path in sorted((policy.parent / "cases").glob("*.yaml")) if path.name != "kyverno-test.yaml"]
    documents = [document for path in files for document in load_documents(path.read_bytes(), file=str(path))]
    return tuple(
        each.value for each in expand_lists(documents) if isinstance(each.value, dict) and "kind" in each.value
    )
