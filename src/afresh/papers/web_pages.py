"""How often web pages change, as Cho & Garcia-Molina measured and then assumed it.

720 000 pages of 270 sites were crawled daily for four months (2000, §6.1, Fig. 12). For Table 6 the five
classes of Fig. 12 change every day, week, month, four months and year; Razniewski 2016, Table 4, starts from
the same classes.
"""

from __future__ import annotations

import numpy as np

from afresh.values.arrays import Floats

CLASSES = ("up to 1 day", "to 1 week", "to 1 month", "to 4 months", "longer")
SHARES: Floats = np.array([0.23, 0.15, 0.16, 0.16, 0.30])
INTERVALS_DAYS: Floats = np.array([1.0, 7.0, 30.0, 120.0, 365.0])
MONTH_DAYS = 30.0
