"""The API of a cluster under ``/api/v1``: what every project answers, and its shards. It only reads."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from afresh.web import schemas
from afresh.web.api import READ, add_common, refuse_unknown_parameters
from afresh.web.content_access import ContentAccess
from afresh.web.dashboard_data import ClusterData
from afresh.web.feed.feed_api import FeedWatch


def make_cluster_api(data: ClusterData, access: ContentAccess, watch: FeedWatch) -> APIRouter:
    """Return the routes of a cluster: they only read."""
    router = APIRouter(prefix="/api/v1", dependencies=[Depends(refuse_unknown_parameters)])
    add_common(router, data, access, watch)

    @router.get("/shards", responses=READ, summary="The shards, the common price, and large hosts")
    def shards() -> schemas.ClusterOut:
        return schemas.ClusterOut.model_validate(data.cluster.cluster_status())

    return router
