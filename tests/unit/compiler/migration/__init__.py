"""Tests of `pyverno.compiler.migration`."""
