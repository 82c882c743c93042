"""The rivals of the adaptive policy: rules of crawlers in use, and policies of the literature."""
