"""Public corpora, run against the product: `python -m tests.conformance --corpus DIR`.

A corpus is a folder laid out like Kyverno's test data: `cli`, `special`, `apply`, `tables`, `jmespath`, `cel`. Every
case is found by its structure. Nothing here may look at the name of a case, nor stand in for code of the product.
"""
