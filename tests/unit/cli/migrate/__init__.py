"""Tests of `pyverno migrate`."""
