"""The fast tier of the engine: plans per index key, fused pass-checks, fast verdicts of conditions and CEL claims."""

from __future__ import annotations
