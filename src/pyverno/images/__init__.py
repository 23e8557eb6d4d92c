"""Container images of resources: their references, and the fields that hold them.

`kube.imageref` parses references; this package finds them and describes them the way policies see them. It must never
call a registry.
"""

from __future__ import annotations

from pyverno.images.extract import FoundImages, extract_images, find_images, list_images
from pyverno.images.extractors import BUILTIN_EXTRACTORS, IMAGE_VOLUMES, Extractor, Extractors, compile_extractors
from pyverno.images.info import ImageInfo, parse_image, parse_image_at

__all__ = [
    "BUILTIN_EXTRACTORS",
    "IMAGE_VOLUMES",
    "Extractor",
    "Extractors",
    "FoundImages",
    "ImageInfo",
    "compile_extractors",
    "extract_images",
    "find_images",
    "list_images",
    "parse_image",
    "parse_image_at",
]
