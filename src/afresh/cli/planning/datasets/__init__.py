"""``plan``, ``budget`` and ``estimate`` on datasets of many files, on one machine or on a Ray cluster."""
