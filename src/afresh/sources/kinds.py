"""The import path under which packages with sources of their own know ``SourceKind``; see ``registry``."""

from afresh.sources.registry import BUILT_IN, SourceKind

__all__ = ["BUILT_IN", "SourceKind"]
