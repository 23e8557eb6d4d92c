"""`pyverno controller`: flags of the controllers, and the processes that run with them."""

from __future__ import annotations
