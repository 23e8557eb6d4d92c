"""The compiler: policy documents become rules of the engine, and everything wrong with them becomes known.

decode → validate → autogen → parse → lower. A new policy kind is a new lowering here. This package must never evaluate
a rule, read a file or ask a cluster.
"""

from __future__ import annotations

from pyverno.compiler.compile import Compilation, Compiled, compile_document, compile_documents

__all__ = ["Compilation", "Compiled", "compile_document", "compile_documents"]
