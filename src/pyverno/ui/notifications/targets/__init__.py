"""Kinds of targets: one module each turns a delivery into the requests of one protocol.

Names and messages of results are hostile text: each module quotes them as its protocol needs, or sends them in a form
that the receiver never interprets. This room must never decide whether a notice is sent, or send one again.
"""

from __future__ import annotations
