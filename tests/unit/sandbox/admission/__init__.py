"""Tests of pyverno.sandbox.admission."""
