"""Results with their history: what fails now, since when, and what is resolved.

The store holds copies of reports; the reports of the cluster stay the truth, and the store is filled again from them.
"""

from __future__ import annotations
