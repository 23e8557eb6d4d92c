"""Results as text: places first, grouped by file, quiet about what passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.documents import BAD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.commandline import Run

FINDING = (
    "bad.yaml:9:12 no-latest/tag validation error: no latest. rule tag failed at path /spec/containers/0/image/\n"
    "    shop/Pod/bad, rule at latest.yaml:11:5\n"
)


def test_a_failure_shows_both_places(cli: Run) -> None:
    """The field of the manifest that does not fit, and the rule."""
    ran = cli("apply", "latest.yaml", "-r", "good.yaml,bad.yaml")
    head, tail = "Applying 1 policy rule(s) to 2 resource(s)...", "pass: 1, fail: 1, warn: 0, error: 0, skip: 0"
    assert (1, f"\n{head}\n{FINDING}\n{tail}\n", "") == (ran.code, ran.out, ran.err)


def test_quiet_shows_findings_only(cli: Run) -> None:
    """No header, no summary; nothing at all when all is well."""
    ran = cli("apply", "latest.yaml", "-r", "bad.yaml", "-q")
    assert (1, FINDING) == (ran.code, ran.out)
    ran = cli("apply", "latest.yaml", "-r", "good.yaml", "--quiet")
    assert (0, "") == (ran.code, ran.out)


@pytest.mark.parametrize("flag", ["-v", "--v=2", "-v4"])
def test_verbose_also_shows_what_passed(cli: Run, flag: str) -> None:
    """With the same places."""
    ran = cli("apply", "latest.yaml", "-r", "good.yaml", flag)
    assert "good.yaml:1:1 no-latest/tag pass validation rule 'tag' passed.\n    shop/Pod/good, rule at" in ran.out
    assert "good.yaml:1:1" not in cli("apply", "latest.yaml", "-r", "good.yaml", "--v=0").out


def test_findings_of_a_file_stand_together(cli: Run, folder: Path) -> None:
    """Files are separated by an empty line."""
    (folder / "other.yaml").write_text(BAD)
    (folder / "two.yaml").write_text(f"{BAD}---\n{BAD}")
    ran = cli("apply", "latest.yaml", "audited.yaml", "-r", "two.yaml,other.yaml", "-q")
    files = [line.partition(":")[0] for line in ran.out.splitlines() if not line.startswith(" ")]
    assert ["two.yaml"] * 4 + [""] + ["other.yaml"] * 2 == files


def test_max_results_counts_the_omitted_results(cli: Run, folder: Path) -> None:
    """They count in the summary and the exit code."""
    (folder / "two.yaml").write_text(f"{BAD}---\n{BAD}---\n{BAD}")
    ran = cli("apply", "latest.yaml", "-r", "bad.yaml,two.yaml", "--max-results", "2")
    assert (1, True, 2) == (ran.code, "\n... and 2 more (--max-results 2)\n" in ran.out, ran.out.count("no-latest/tag"))
    assert "fail: 4" in ran.out


def test_an_error_of_a_mutation_is_not_followed_by_a_success(cli: Run, folder: Path) -> None:
    """Kyverno prints both."""
    policy = (folder / "label.yaml").read_text().replace('"{{', '"{{ missing.').replace("'{{", "'{{ missing.")
    (folder / "broken.yaml").write_text(policy)
    ran = cli("apply", "broken.yaml", "-r", "good.yaml")
    assert (1, True, False) == (ran.code, "error: 1" in ran.out, "successfully" in ran.out), ran.out
