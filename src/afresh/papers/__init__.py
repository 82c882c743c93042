"""The papers' tables and figures, recomputed and set beside what was printed."""
