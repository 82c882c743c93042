from urllib.parse import urlencode
from tests.web.stage import Stage
import pytest
pytestmark = pytest.mark.waits(together="stage")
def test_stress(stage: Stage):
    seen = {}
    for k in range(60):
        for source in ("hosts","papers","views"):
            items = stage.web.get(f"/api/v1/items?source={source}&limit=5").json()["items"]
            for it in items:
                one = stage.web.get(f"/api/v1/item?{urlencode({'key': it['key']})}").json()["item"]
                for o in (it, one):
                    seen.setdefault(it["key"], set()).add(o["worth"])
    bad = {k: v for k, v in seen.items() if len(v) > 1}
    assert not bad, bad
