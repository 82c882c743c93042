"""The import path of ``SourceKind`` for packages that define sources; see ``registry``."""

from afresh.sources.registry import BUILT_IN, SourceKind

__all__ = ["BUILT_IN", "SourceKind"]
