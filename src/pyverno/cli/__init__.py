"""The command line: arguments become a Host and an engine, reviews become text and an exit code.

One file per command (with `command_*` files beside it), all imported only when they are called. This package must never
judge a resource itself: only the engine does, through `evaluate`.
"""
