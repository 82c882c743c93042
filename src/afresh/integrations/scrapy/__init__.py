"""The Scrapy add-on: spiders crawl the items that afresh lends them, and report what they found.

    ADDONS = {"afresh.integrations.scrapy.AfreshAddon": 500}
    AFRESH_PROJECT = "mirror"                       # the folder of a project, or instead of it:
    AFRESH_URL = "http://127.0.0.1:8321"            # an engine that runs elsewhere, or 'afresh serve'
    AFRESH_TOKEN = "…"                              # the token of that project

``lessors`` takes leases from a project folder or over HTTP, ``lease_session`` holds those of one crawl,
``lease_scheduler`` starts their requests, and ``report_middleware`` reports the outcomes.
"""

from __future__ import annotations

from afresh.integrations.scrapy.addon import AfreshAddon
from afresh.integrations.scrapy.lease_scheduler import LeaseScheduler
from afresh.integrations.scrapy.report_middleware import ReportMiddleware

__all__ = ["AfreshAddon", "LeaseScheduler", "ReportMiddleware"]
