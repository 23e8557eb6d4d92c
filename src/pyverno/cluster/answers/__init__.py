"""Answers of an API server: read within limits of bytes, decoded, refusals as errors, collections page by page."""
