"""`pyverno report`: the PolicyReports of a cluster or of files, as people want to read them."""

from __future__ import annotations
