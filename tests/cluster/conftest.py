"""What tests of a cluster share with those of commands."""

from tests.cli.conftest import afresh as afresh
from tests.cli.planning.datasets.conftest import make_items as make_items
