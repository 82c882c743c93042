"""The estimators of change rates; ``afresh.rates.estimator`` holds the table of all estimators."""
