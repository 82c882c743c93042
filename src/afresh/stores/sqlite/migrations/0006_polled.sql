-- Every poll would move its item in this index: a quarter of the time of a commit, for an order seldom asked for.
DROP INDEX by_polled;
