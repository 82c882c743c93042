"""The estimators of change rates, one file each; ``afresh.rates.estimator`` holds the table of them."""
