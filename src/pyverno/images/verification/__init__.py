"""Verification of signatures and attestations over bytes that were fetched already.

Every configured constraint of an attestor becomes an entry of a ledger, and only a ledger without an open or broken
entry passes. This package must never read a clock, a file or the network: time, trust roots and bytes are arguments.
"""

from __future__ import annotations
