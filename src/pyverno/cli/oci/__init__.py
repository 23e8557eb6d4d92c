"""`pyverno oci`: policies as artifacts in registries."""

from __future__ import annotations
