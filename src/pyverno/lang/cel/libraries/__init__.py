"""The function libraries: one module per library, one Python function per CEL function.

Each function is declared with its signatures, its cost and the version that brought it; its docstring is its
documentation, with examples that the tests run. Libraries never do I/O: calls to a cluster or registry go through
`CelHost`.
"""
