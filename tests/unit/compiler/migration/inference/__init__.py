"""Tests of `pyverno.compiler.migration.inference`."""
