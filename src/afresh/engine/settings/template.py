"""The ``afresh.toml`` of a new project."""

from __future__ import annotations

from afresh.values.objective_names import OBJECTIVE_NAMES

TEMPLATE = """\
# Settings of this mirror. Every line may be left out; what is commented shows the default.
# Durations: 90s 15m 6h 1d. Rates: 2/s 5000/d. Secrets: env:NAME. All settings, with
# what they are now: afresh config check --json

[store]
# url = "sqlite:afresh.db"
# versions = 5              # copies kept of each item
# copies = "s3://bucket/prefix"   # keep copies in an object store or a folder (file:copies)
# max_size = "100GB"        # when it is reached, old versions are dropped, then new copies refused

[budget]
requests = "1/s"            # or "0.05/item/d"; robots.txt, redirects, retries, audits count
# burst = 1                 # requests at once after idle time; default: those of one second
# bytes = "10GB/d"
# seconds = "20m/h"

[plan]
# policy = "adaptive"       # or uniform
# objective = "freshness"   # or OTHER_OBJECTIVES
# audit_share = 0.02        # share of polls at random, to measure freshness without bias
# target = 0.9              # warn when audited freshness falls below; or "lag=6h": content lag above

[run]
# retry_first = "1m"        # after a failure, doubled each time …
# retry_longest = "1d"      # … up to this

[[source]]
name = "web"
kind = "http"
# delay = "1s"              # between requests to one host
# sitemaps = ["https://example.org/sitemap.xml"]
# selectors = ["main"]      # what counts as content
# on_change = ["python", "reindex.py"]
""".replace("OTHER_OBJECTIVES", ", ".join(OBJECTIVE_NAMES[1:]))
