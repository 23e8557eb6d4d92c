"""Tables: what `kubectl get` prints, as the API server's printers lay it out for every kind.

One module per family of kinds; each ends with the `Printer`s of its kinds. No module here may change an object or know
who asks; none writes text for terminals, which is the client's work.
"""

from kubesandbox.tables.table import to_table

__all__ = ["to_table"]
