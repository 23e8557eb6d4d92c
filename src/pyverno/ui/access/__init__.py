"""Access to the pages: logins by OpenID Connect or by a proxy, and the namespaces that a user may read.

The namespaces of a user become the scope of every query to the store, so that no page decides what it shows.
"""

from __future__ import annotations
