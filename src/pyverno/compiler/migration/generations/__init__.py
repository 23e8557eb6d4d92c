"""Generate rules as GeneratingPolicies: the calls that create objects, and the policy around them."""

from __future__ import annotations
