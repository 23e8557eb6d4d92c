"""`python -m tests.cases.migration [CONTROL...]`: convert policies of the library anew, with their certificates.

Each is compared with its source on thousands of objects, which takes minutes for all of them.
"""

from __future__ import annotations

import sys

from pyverno.kube.json import encode_indent
from tests.support.librarycases import POLICIES, certificate_path, control_of, conversions, converted_path


def main(names: list[str]) -> int:
    """Return 1 when a policy does not convert or decides otherwise than its source."""
    failed = 0
    for policy in POLICIES:
        if names and control_of(policy) not in names:
            continue
        made = conversions(policy, is_tested=True)
        lines = [line for each in made for line in each.lines]
        print(control_of(policy), sorted({line.state for line in lines}), flush=True)
        records = [each.certificate for each in made if each.certificate is not None]
        if any(line.refused is not None for line in lines) or len(records) != len(made):
            print(*(line.reason or line.refused for line in lines), flush=True)
            failed = 1
            continue
        converted_path(policy).parent.mkdir(parents=True, exist_ok=True)
        converted_path(policy).write_text("---\n".join(each.text for each in made), encoding="utf-8")
        certificate_path(policy).write_text("".join(encode_indent(each) + "\n" for each in records), encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
