"""Signed manifests: objects that carry the manifest they were made from, and signatures over it, in annotations.

This package must never read a clock, a file or the network: whether a signature holds is decided by
`images.verification`, and what the cluster has is an argument.
"""

from __future__ import annotations
