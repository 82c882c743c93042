"""The protocol of an estimator of rates, and the table of all estimators: a new one is one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from afresh.rates.estimators.gamma_filter import Counts, GammaFilter, LastModified
from afresh.rates.estimators.grid_posterior import GridPosterior
from afresh.rates.estimators.lln import LawOfLargeNumbers
from afresh.rates.estimators.log_family import LogFamily
from afresh.rates.estimators.mle import MaximumLikelihood
from afresh.rates.estimators.moment import MomentMatching
from afresh.rates.estimators.naive import Naive
from afresh.rates.poll_table import PollTable
from afresh.rates.priors.gamma_prior import GammaPrior
from afresh.values.arrays import Float64s

State = TypeVar("State")


class Estimator(Protocol[State]):
    """Learns the rates of many items from their polls.

    A state is a frozen value of arrays with a row per item: a few floats each, or the polls themselves where
    a method has no shorter summary. It pickles. An item without polls is answered by the prior. Nothing here
    ever returns NaN; a rate of 0 or ∞ only where a formula says so (see each file). Forgetting and rates to
    plan with are not part of the protocol: they need a posterior, which the ``POSTERIOR_METHODS`` have.
    """

    @property
    def name(self) -> str:
        """Its name on the command line."""

    @property
    def order_free(self) -> bool:
        """Whether the order of an item's polls makes no difference."""

    @property
    def consistent(self) -> bool:
        """Whether regular polls without end lead to the true rate."""

    def start(self, prior: GammaPrior, items: int) -> State:
        """The state of items without polls."""

    def update(self, state: State, polls: PollTable) -> State:
        """The state after further polls, one or many, of any of the items."""

    def rate(self, state: State) -> Float64s:
        """The estimated rate of every item."""

    def interval(self, state: State, level: float) -> tuple[Float64s, Float64s]:
        """Ends of the interval at ``level`` for every item; the upper one may be ∞."""


ESTIMATORS: Mapping[str, Estimator[Any]] = {
    estimator.name: estimator
    for estimator in (
        Naive(),
        LogFamily("cho", 0.5),
        LogFamily("zhang", 0.4),
        MaximumLikelihood(),
        MomentMatching(),
        LawOfLargeNumbers(),
        GammaFilter(),
        LastModified(),
        Counts(),
        GridPosterior(),
    )
}

POSTERIOR_METHODS = tuple(
    name for name, e in ESTIMATORS.items() if isinstance(e, GammaFilter | GridPosterior)
)
