"""Analysis of a set of policies as a whole, by running it on generated objects.

One check is one module of `checks`: its docstring is its page in the reference, its row is in `registry`, its test is
the file of the same name. Every finding has witnesses: objects on which the engine shows it. A finding holds for the
tested objects; it is no proof.
"""

from __future__ import annotations
