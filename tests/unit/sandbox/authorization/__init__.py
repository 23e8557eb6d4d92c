"""Tests of pyverno.sandbox.authorization."""
