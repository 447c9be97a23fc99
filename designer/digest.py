"""A digest of a design file: any later edit of the file, wanted or not, shows. It proves no author."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

FIELD = "digest"


def document_digest(document: Mapping[str, Any]) -> str:
    """SHA-256 over the document as JSON with sorted keys and no spaces, its own field `digest` left out."""
    rest = {name: value for name, value in document.items() if name != FIELD}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def with_digest(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with its digest as the last field."""
    return {**document, FIELD: document_digest(document)}
