"""CEL source text to syntax trees: lexer, literals, parser, macros."""

from __future__ import annotations
