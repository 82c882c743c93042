"""The import path of ``SourceKind`` for packages that define sources. It is defined in ``registry``."""

from afresh.sources.registry import BUILT_IN, SourceKind

__all__ = ["BUILT_IN", "SourceKind"]
