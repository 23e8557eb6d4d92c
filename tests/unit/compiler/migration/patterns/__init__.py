"""Tests of `pyverno.compiler.migration.patterns`."""
