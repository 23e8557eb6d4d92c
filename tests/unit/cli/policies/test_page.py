"""The policy library as a page."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

from pyverno.cli.policies.page import library_page
from pyverno.offline.policylibrary import find_controls


def test_the_page_runs_its_own_script_only() -> None:
    """The policy of the page names the hash of the script that it holds."""
    page = library_page(find_controls("pod-security"))
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert not re.findall(r"(?:src|href)=", page)


def test_texts_of_policies_are_escaped() -> None:
    """A description with tags stays text."""
    control = replace(find_controls("disallow-latest-tag")[0], description="<script>alert(1)</script>", title='"><b>')
    page = library_page([control])
    assert "<script>alert" not in page
    assert '"><b>' not in page
