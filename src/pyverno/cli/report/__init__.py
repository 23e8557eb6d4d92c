"""`pyverno report`: the PolicyReports of a cluster or of files as tables, pages and formats for machines."""

from __future__ import annotations
