"""Many engines under one price: hosts are split over shards, and a coordinator shares the budget."""
