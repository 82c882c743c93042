"""The policies by name. Checks and commands find them here."""

from __future__ import annotations

from afresh.policy.adaptive import Adaptive
from afresh.policy.lambdacrawl import LambdaCrawl
from afresh.policy.nutch import Nutch, NutchSync
from afresh.policy.oracle import Oracle
from afresh.policy.policy import Maker, Policy, Start
from afresh.policy.proportional import Proportional
from afresh.policy.stormcrawler import StormCrawler
from afresh.policy.uniform import Uniform
from afresh.values.errors import one_of

POLICIES: dict[str, Maker] = {
    "adaptive": Adaptive,
    "uniform": Uniform,
    "oracle": Oracle,
    "proportional": Proportional,
    "nutch": Nutch,
    "nutch-sync": NutchSync,
    "stormcrawler": StormCrawler,
    "lambdacrawl": LambdaCrawl,
}


def make_policy(name: str, start: Start) -> Policy:
    """The policy of that name.

    >>> make_policy("uniform", Start.of(2, 1.0)).next(0.0, 1).tolist()
    [0]
    >>> make_policy("unifrom", Start.of(2, 1.0))
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown policy 'unifrom': did you mean 'uniform'? One of adaptive, \
uniform, oracle, proportional, nutch, nutch-sync, stormcrawler, lambdacrawl
    """
    return POLICIES[one_of("policy", name, POLICIES)](start)
