"""B23: policies converted to CEL and judged beside their sources, and analyzed together."""

from __future__ import annotations

import time
from itertools import islice

from pyverno.cli.equivalent.admission import admission_of
from pyverno.cli.migrate.certificate import Settings
from pyverno.cli.migrate.conversion import convert_document
from pyverno.compiler.analysis.population import make_population
from pyverno.compiler.analysis.run import analyze
from pyverno.compiler.analysis.workspace import Workspace
from pyverno.compiler.compile import compile_documents
from pyverno.compiler.migration.inference import known_definitions
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.kube.yaml.documents import Document, load_documents
from pyverno.offline.host import OfflineHost
from pyverno.offline.objects import ObjectStore
from tests.bench.inputs import POD_SECURITY

__all__ = ["analysis_seconds", "many_minutes", "one_seconds"]

OBJECTS = 500
SAMPLE = 30
MANY = 300
WORKERS = 2
POPULATION = 4000
"""Objects of an analysis, as many as `pyverno analyze` generates."""


def _documents() -> list[Document]:
    library = POD_SECURITY.parent
    files = [path for path in sorted(library.rglob("clusterpolicy.yaml")) if "cel" not in path.parts]
    chosen = files[:: max(1, len(files) // SAMPLE)][:SAMPLE]
    return [document for path in chosen for document in load_documents(path.read_bytes(), file=str(path))]


def _seconds() -> list[float]:
    settings, book = Settings(OBJECTS, 1, "1.35", admission_of("1.35")), SchemaBook()
    found = []
    for document in _documents():
        started = time.process_time()
        convert_document(document, book, settings, selected=lambda _: True)
        found.append(time.process_time() - started)
    return found


def one_seconds() -> float:
    """B23: processor seconds to convert and test the slowest of 30 policies of the library, with 500 objects."""
    return max(_seconds())


def many_minutes() -> float:
    """B23.many: minutes for 300 such policies with two workers on two cores, from the mean of 30."""
    found = _seconds()
    return sum(found) / len(found) * MANY / WORKERS / 60


def analysis_seconds() -> float:
    """B23.analyze: processor seconds to analyze 300 policies of the library, ClusterPolicies first."""
    library = POD_SECURITY.parent
    rules = [path for path in sorted(library.rglob("clusterpolicy.yaml")) if "cel" not in path.parts]
    files = [*rules, *sorted((library / "cel").rglob("validatingpolicy.yaml"))]
    read = (document for path in files for document in load_documents(path.read_bytes(), file=str(path)))
    documents = list(islice(read, MANY))
    started = time.process_time()
    bodies = [document.value for document in documents]
    definitions = known_definitions(bodies)
    admit = admission_of("1.35", definitions)
    population = make_population(bodies, [], admit, count=POPULATION, seed=1, definitions=definitions)
    workspace = Workspace(
        compile_documents(documents), population, lambda objects: OfflineHost(objects=ObjectStore(objects))
    )
    for _ in analyze(workspace):
        pass
    return time.process_time() - started
