"""The demands of an entry of verifyImages."""

from __future__ import annotations

import pytest

from pyverno.engine.imageverification.demands import read_demands
from pyverno.errors import VerificationError


def test_every_attestation_is_demanded() -> None:
    """More than can be checked is an error: none is left out in silence."""
    written = [{"type": f"https://example.com/{number}"} for number in range(101)]
    assert 100 == len(read_demands({"attestations": written[:100]}).attestations)
    with pytest.raises(VerificationError, match=r"attestations has 101 items, at most 100"):
        read_demands({"attestations": written})
