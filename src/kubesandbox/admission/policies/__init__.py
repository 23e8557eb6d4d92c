"""ValidatingAdmissionPolicies and MutatingAdmissionPolicies, evaluated in process."""

from __future__ import annotations
