"""Tests of pyverno.controllers."""
