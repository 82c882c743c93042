"""The pages of a cluster: those that every project has, and its shards."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from afresh.web.content_access import ContentAccess
from afresh.web.dashboard_data import ClusterData
from afresh.web.error_responses import RequestError
from afresh.web.pages import Pages, add_common_pages

_MENU = {"/": "Now", "/items": "Items", "/changes": "Changes", "/shards": "Shards"}
_READ_ONLY = "Read only: 'afresh add' adds items to a cluster."
_ENGINE_PAGES = {"/plan": "Plan", "/sources": "Sources"}
_SHARDS_SHOWN = 500


def cluster_pages(data: ClusterData) -> Pages:
    """Return what renders the pages of a cluster."""
    return Pages(data, _MENU, _READ_ONLY)


def make_cluster_pages(data: ClusterData, pages: Pages, access: ContentAccess) -> APIRouter:
    """Return the routes. ``access`` decides who may see copies."""
    router = APIRouter(include_in_schema=False)
    add_common_pages(router, data, pages, access)

    @router.get("/shards")
    def shards() -> HTMLResponse:
        snapshot, cluster = data.snapshots.get(), data.cluster.cluster_status()
        # Those with a problem come first, so that they are seen among very many.
        found = sorted(cluster.shards, key=lambda shard: (not shard.problem, shard.shard))
        return pages.render(
            "shards.html",
            "/shards",
            snapshot=snapshot,
            cluster=cluster,
            shards=found[:_SHARDS_SHOWN],
            more=max(len(found) - _SHARDS_SHOWN, 0),
            items=sum(shard.items for shard in found),
            rate_per_s=sum(shard.rate_per_s for shard in found),
            budget_per_s=snapshot.status.limits.requests,
            ill=sum(bool(shard.problem) for shard in found),
            has_nodes=any(shard.node for shard in found),
        )

    for path, title in _ENGINE_PAGES.items():
        _add_missing_page(router, path, title)
    return router


def _add_missing_page(router: APIRouter, path: str, title: str) -> None:
    @router.get(path)
    def missing() -> HTMLResponse:
        words = f"The page {title} is that of one engine: a cluster has none."
        raise RequestError(404, words, "Shards shows what each shard has and spends.")
