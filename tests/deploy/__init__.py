"""Tests of what the folder deploy holds, and of the places where people pick pyverno up."""
