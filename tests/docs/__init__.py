"""The commands and examples of the guide, run as tests."""
