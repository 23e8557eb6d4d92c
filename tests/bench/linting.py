"""B12.lint: the checks of `pyverno lint` on the policies of the library."""

from __future__ import annotations

import yaml

from pyverno.compiler import compile_documents
from pyverno.compiler.lints.run import lint_documents
from pyverno.kube.yaml.documents import load_documents
from tests.bench.inputs import POD_SECURITY
from tests.bench.measure import compare

__all__ = ["lint_ratio"]

POLICIES = 600


def lint_ratio() -> float:
    """B12.lint: linting 600 compiled policies, half of them in CEL, by the time that CSafeLoader takes for them."""
    library = POD_SECURITY.parent
    files = sorted(path for path in library.rglob("*.yaml") if path.stem in ("clusterpolicy", "validatingpolicy"))
    texts = [path.read_bytes() for path in (files * POLICIES)[:POLICIES]]
    items = compile_documents([document for text in texts for document in load_documents(text)]).items
    assert not any(item.errors for item in items)

    def parse() -> None:
        for text in texts:
            list(yaml.load_all(text, Loader=yaml.CSafeLoader))

    return compare(lambda: lint_documents(items), parse, rounds=5).ratio
