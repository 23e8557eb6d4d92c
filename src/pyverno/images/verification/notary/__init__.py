"""Notary Project signatures: JWS and COSE envelopes, their certificate chains and trust stores.

As everywhere below `images.verification`, every demand is an entry of a ledger. This package must never read a clock,
a file or the network: time, trust stores and bytes are arguments.
"""

from __future__ import annotations
