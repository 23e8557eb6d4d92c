"""Container image references: parsed, in their normal form, and selected by globs.

The law of this package. Two texts that make a node pull the same image are one reference, and whatever selects,
verifies, caches or names images goes through `parse_reference`:

1. The host of a registry is written in lower case, without the port 443, an IPv6 address in its shortest form
   (`hosts.normal_host`). Docker Hub's API host is `docker.io`. A port 80 stays: it is another endpoint.
2. The form that policies see (`reference`, `registry`, `path`) is Kyverno's: `index.docker.io` and `docker.io` are kept
   apart in it, and no `library/` is added. `ImageReference.normal` is one for both.
3. A selector that enforces (`globs.selecting`) takes an image when any of its equivalent spellings fits: with and
   without the default registry and `library/`, by Docker Hub's three names, with the port, by its tag or its digest.
   A digest without a tag has no tag but fits `:*`. A glob is normalised like a reference.
4. A selector that exempts (`globs.exempting`) takes an image only when it certainly is meant: beside a digest the tag
   proves nothing (`:*` is every digest, too), and a wildcard in a host or in the first part of a name never reaches
   beyond that part (`ghcr.io*` is no `ghcr.io.example.com`).
5. A text that does not parse is no reference. It is an error for what enforces, and never exempt.
"""

from __future__ import annotations
