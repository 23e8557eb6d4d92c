"""Unit tests of `pyverno.controllers.background.mutating`."""
