"""B10, B11, B12: whole runs of the command line as processes of their own."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml

from tests.bench.inputs import policy_files, small_pod, write_pods
from tests.bench.measure import compare_commands

__all__ = ["json_ratio", "one_ratio", "version_ratio", "yaml_ratio"]

PODS = 10_000
_YAML_ROUNDS, _JSON_ROUNDS = 3, 7  # a round with YAML takes half a minute
_NOTHING = (sys.executable, "-c", "pass")
_PARSE_YAML = "import sys, yaml; [*yaml.load_all(open(sys.argv[1], 'rb'), Loader=yaml.CSafeLoader)]"
_PARSE_JSON = "import gc, sys, orjson; gc.disable(); orjson.loads(open(sys.argv[1], 'rb').read())"


def yaml_ratio() -> float:
    """B10: ten thousand pods as YAML, by the time that CSafeLoader takes for the file."""
    return _apply_ratio(0, _PARSE_YAML, _YAML_ROUNDS)


def json_ratio() -> float:
    """B11: ten thousand pods as a JSON List, by the time that orjson takes for the file."""
    return _apply_ratio(1, _PARSE_JSON, _JSON_ROUNDS)


def _apply_ratio(index: int, parse: str, rounds: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = str(write_pods(Path(folder), PODS)[index])
        policies = [str(path) for path in policy_files()]
        reference = (sys.executable, "-c", parse, path)
        return compare_commands(_pyverno("apply", *policies, "-r", path), reference, rounds=rounds).ratio


def version_ratio() -> float:
    """B12: `pyverno --version` by a Python that does nothing; the command is the script that pip installs.

    `python -m pyverno` would add what Python's own `runpy` costs to import, about 0.35 of the ratio.
    """
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "pyverno"
        script.write_text("import sys\nfrom pyverno.__main__ import main\nsys.exit(main())\n")
        return compare_commands((sys.executable, str(script), "--version"), _NOTHING, rounds=25).ratio


def one_ratio() -> float:
    """B12: one policy on one resource by a Python that does nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pod.yaml"
        path.write_text(yaml.dump(small_pod(), Dumper=yaml.CSafeDumper, sort_keys=False))
        return compare_commands(_pyverno("apply", str(policy_files()[0]), "-r", str(path)), _NOTHING, rounds=15).ratio


def _pyverno(*arguments: str) -> Sequence[str]:
    return (sys.executable, "-m", "pyverno", *arguments)
