"""The rivals of the adaptive policy: the rules of common crawlers, and policies from papers."""
