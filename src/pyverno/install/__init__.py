"""Install manifests: CustomResourceDefinitions, structural schemas, roles and workloads of the controllers."""

from __future__ import annotations
