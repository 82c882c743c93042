"""The table of all policies by name."""

from __future__ import annotations

from afresh.policy.adaptive.adaptive import Adaptive
from afresh.policy.policy import Policy, PolicyFactory, PolicyInput
from afresh.policy.ranking_policy import Oracle, UniformPolicy
from afresh.policy.rivals.crawler_rules import Nutch, NutchSync, Sosse, StormCrawler
from afresh.policy.rivals.estimated_rates import LambdaCrawl, PosteriorInterval, Proportional
from afresh.policy.rivals.mirror_sync import MirrorSync
from afresh.values.errors import one_of

POLICIES: dict[str, PolicyFactory] = {
    "adaptive": Adaptive,
    "uniform": UniformPolicy,
    "oracle": Oracle,
    "proportional": Proportional,
    "nutch": Nutch,
    "nutch-sync": NutchSync,
    "stormcrawler": StormCrawler,
    "sosse": Sosse,
    "lambdacrawl": LambdaCrawl,
    "posterior-interval": PosteriorInterval,
    "mirrorsync": MirrorSync,
}


def make_policy(name: str, start: PolicyInput) -> Policy:
    """Make the policy with this name from its input; raise ``UsageError`` if there is no such policy.

    >>> make_policy("uniform", PolicyInput.of(2, 1.0)).next(0.0, 1).tolist()
    [0]
    >>> make_policy("unifrom", PolicyInput.of(2, 1.0))
    Traceback (most recent call last):
    afresh.values.errors.UsageError: unknown policy 'unifrom': did you mean 'uniform'? One of adaptive, \
uniform, oracle, proportional, nutch, nutch-sync, stormcrawler, sosse, lambdacrawl, posterior-interval, \
mirrorsync
    """
    return POLICIES[one_of("policy", name, POLICIES)](start)
