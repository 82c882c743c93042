"""Where data comes from: each kind of source turns a remote system into values; none knows the store."""
