"""The tables and figures of four papers, recomputed and compared with the printed ones."""
