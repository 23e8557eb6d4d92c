"""Tests of the controllers of the sandbox."""
