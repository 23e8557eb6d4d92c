"""Git repositories: their addresses, clones of one commit, and the git program within bounds."""

from __future__ import annotations
