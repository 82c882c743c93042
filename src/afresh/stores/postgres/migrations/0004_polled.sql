-- Every poll would move its item in this index, for an order seldom asked for.
DROP INDEX state_by_polled;
