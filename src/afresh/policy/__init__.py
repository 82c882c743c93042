"""What to refresh next: policies that choose the items to poll and learn from what the polls find."""
