"""Fits decay functions to lifetimes, some of which had not ended when last observed.

Every class of ``model.decay`` is fitted by maximising the log-likelihood ln L = Σ_ended ln f(t) +
Σ_not ended ln S(t). f is the density of a lifetime and S(t) the probability that it is longer than t. The one
with the smallest AIC = 2·parameters − 2·ln L is chosen (Razniewski 2016, §8.1 and §9, asks for class and
rate). Fits are compared with the Kaplan–Meier curve: ``relative_error`` is the area between a fit and this
curve, as a share of the area below the curve.

S counts from the start of a lifetime. But a copy that is refreshed at any time within a lifetime is still
correct at t after the refresh with probability z(t) = (1/m)∫_t^∞ S, where m is the mean lifetime
(``since_refresh``). z equals S only if a refresh restarts the lifetime, or if lifetimes are exponential.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from afresh.model.decay import Decay, Empirical, Exponential, Lomax, decay_from
from afresh.model.decays.empirical import kaplan_meier
from afresh.model.roots import find_crossing, find_maximum, solve_decreasing
from afresh.values.arrays import ArrayLike, Bools, Float64s
from afresh.values.errors import InputError

_KNOTS = 2001


@dataclass(frozen=True, slots=True)
class DecayFit:
    """One fitted class of decay functions.
    ``decay`` is the fitted probability that a lifetime is longer than t. ``spec`` and ``rate`` are the
    arguments of ``decay_from`` for it. ``aic`` is infinite if the class cannot produce these lifetimes, and
    ``why`` then states the reason."""

    name: str
    spec: str
    rate: float
    parameters: int
    log_likelihood: float
    relative_error: float
    why: str = ""

    @property
    def aic(self) -> float:
        """Akaike's criterion, 2·parameters − 2·log-likelihood; smaller is better."""
        return 2 * self.parameters - 2 * self.log_likelihood

    @property
    def words(self) -> str:
        """The class and its parameters as a text."""
        _, _, shape = self.spec.partition(":")
        of_shape = f" of shape {float(shape):.3g}" if shape else ""
        return f"{self.name}{of_shape} at rate {self.rate:.3g}"

    @property
    def decay(self) -> Decay:
        """The fitted decay of a lifetime; it is that of a copy only if a refresh restarts the lifetime."""
        return decay_from(self.spec, self.rate)

    def since_refresh(self) -> Decay:
        """Return the decay of a copy that is refreshed at any time of a lifetime: z(t) = (1/m)∫_t^∞ S, where
        S is the decay of a lifetime and m the mean lifetime.
        It is exact for the exponential and Lomax classes, and otherwise approximated by 2000 linear pieces.

        >>> fit = DecayFit("lomax", "lomax:3.0", 1.5, 2, -10.0, 0.01)
        >>> round(float(fit.decay.survival(2.0)), 3), round(float(fit.since_refresh().survival(2.0)), 3)
        (0.125, 0.25)
        """
        lifetime = self.decay
        if isinstance(lifetime, Exponential):
            return lifetime
        mean = float(lifetime.total())
        if not mean < math.inf:
            raise InputError("the mean lifetime is infinite: a copy refreshed at any time never goes wrong")
        if isinstance(lifetime, Lomax):
            return Lomax(np.asarray(lifetime.shape) - 1, lifetime.scale)
        far = mean
        while float(lifetime.integral(far)) < mean * (1 - 1e-12):
            far *= 2
        knots = far * np.linspace(0, 1, _KNOTS) ** 2  # denser where z bends most
        values = np.clip(1 - lifetime.integral(knots) / mean, 0.0, 1.0)
        return Empirical(knots, np.minimum.accumulate(values), linear=True)


@dataclass(frozen=True, slots=True)
class DecayFits:
    """All fits, the one with the smallest AIC first, and the observed curves.
    ``empirical`` is the Kaplan–Meier curve of the lifetimes, ``since_refresh`` the decay of a copy that
    follows from it. Use these two if no class fits well. ``lifetimes`` and ``ended`` are numbers."""

    fits: tuple[DecayFit, ...]
    empirical: Empirical
    since_refresh: Empirical
    lifetimes: int
    ended: int

    @property
    def best(self) -> DecayFit:
        return self.fits[0]

    @property
    def sentence(self) -> str:
        return (
            f"Of {self.lifetimes} lifetimes {self.ended} ended; {self.best.words} fits best, "
            f"{self.best.relative_error:.1%} off the observed curve."
        )


def fit_decays(lifetimes: ArrayLike, ended: ArrayLike | None = None) -> DecayFits:
    """Fit every class to lifetimes; those that are not ``ended`` had not ended when last observed.

    >>> lifetimes = Exponential(0.26).sample(np.random.default_rng(1), 789)
    >>> found = fit_decays(lifetimes)
    >>> found.best.name, round(found.best.rate, 2)
    ('exponential', 0.26)
    """
    times, survival = kaplan_meier(lifetimes, ended)  # this also checks the arguments
    seen = np.asarray(lifetimes, dtype=np.float64)
    over = np.ones(seen.shape, np.bool_) if ended is None else np.asarray(ended, dtype=np.bool_)
    empirical = Empirical(times, survival)
    # In units of the mean lifetime the parameters of every class are near 1, whatever the unit of time.
    unit = float(seen.sum() / over.sum())
    data = _Lifetimes(seen / unit, over)
    fits = [_in_input_unit(name, fitted(data), unit, data.ends) for name, fitted in _FITTERS.items()]
    steps = _geometric(seen, over)
    if not steps.why:
        fits = [_judged_by_steps(fit, seen, over) for fit in fits]
    fits.append(steps)
    longest = float(seen.max())
    judged = sorted((_with_error(fit, empirical, longest) for fit in fits), key=lambda fit: fit.aic)
    copies = Empirical.from_lifetimes(seen, over)
    return DecayFits(tuple(judged), empirical, copies, seen.size, int(over.sum()))


class _Lifetimes(NamedTuple):
    t: Float64s
    over: Bools

    @property
    def ends(self) -> int:
        return int(self.over.sum())


class _Found(NamedTuple):
    """A fit in units of the mean lifetime; ``shape`` is None for classes without a shape parameter."""

    rate: float
    log_likelihood: float
    shape: float | None = None


def _linear(data: _Lifetimes) -> _Found:
    """Fit lifetimes that are uniform on (0, 1/λ): maximise the concave ln L = d·ln λ + Σ_not ended ln(1−λt).
    d is the number of lifetimes that ended, and λ is at most 1/(the longest lifetime that ended)."""
    going = data.t[~data.over]
    most = 1 / float(data.t[data.over].max())

    def slope_ratio(rate: Float64s) -> Float64s:
        """Return d/λ, the positive part of the slope of ln L, divided by Σ t/(1−λt), its negative part."""
        left = 1 - rate * going
        with np.errstate(divide="ignore"):
            return np.zeros(1) if np.any(left <= 0) else data.ends / rate / np.sum(going / left)

    rate = float(find_crossing(slope_ratio, np.array([1e-12 * most]), np.array([most]))[0])
    return _Found(rate, data.ends * math.log(rate) + float(np.sum(np.log1p(-rate * going))))


def _weibull(data: _Lifetimes) -> _Found:
    """Fit S(t) = e^{−(λt)ᵏ}: k solves 1/k − Σ tᵏ·ln t/Σ tᵏ = −mean_ended ln t, then λᵏ = d/Σtᵏ.
    d is the number of lifetimes that ended. The left side of the equation decreases in k."""
    longest = float(data.t.max())
    logs = np.log(data.t / longest)
    mean_log = float(logs[data.over].mean())

    def left_to_right(shape: Float64s) -> Float64s:
        powers = np.exp(shape * logs)
        with np.errstate(divide="ignore"):
            return np.asarray((1 / shape - powers @ logs / powers.sum()) / -mean_log)

    shape = float(find_crossing(left_to_right, np.array([0.02]), np.array([100.0]))[0])
    power_sum = float(np.exp(shape * logs).sum())
    rate = (data.ends / power_sum) ** (1 / shape) / longest
    # Σ(λt)ᵏ = d at this λ.
    hazard = math.log(shape) + shape * (math.log(rate) + math.log(longest)) - math.log(longest)
    log_likelihood = data.ends * (hazard + (shape - 1) * mean_log - 1)
    return _Found(rate, log_likelihood, shape)


def _lomax(data: _Lifetimes) -> _Found:
    """Fit S(t) = (1+t/b)^{−a}: a = d/Σln(1+t/b), with d the number of lifetimes that ended.
    With this a the likelihood depends on b alone, and its maximum is searched."""

    def at_scale(scale: float) -> _Found:
        grown = np.log1p(data.t / scale)
        shape = min(max(data.ends / float(grown.sum()), 0.01), 1e9)
        density = data.ends * math.log(shape / scale) - float(grown[data.over].sum())
        return _Found(shape / scale, density - shape * float(grown.sum()), shape)

    # With b beyond a million mean lifetimes the curve equals the exponential in all digits shown.
    ends = np.array([1e-3]), np.array([1e6])
    best = find_maximum(lambda scale: np.array([at_scale(float(scale[0])).log_likelihood]), *ends)
    return at_scale(float(best[0]))


def _gamma(data: _Lifetimes) -> _Found:
    """Fit S(t) = Q(k, bt), the gamma decay: for each shape k the best b, and of these the most likely k.
    The slope of ln L over ln b is d·k − Σ_ended bt − Σ_not ended r(bt), where r(x) = x^k·e^{−x}/Γ(k, x) rises
    with x and d is the number of lifetimes that ended. So ln L has one maximum in b."""
    from scipy.special import gammaln

    ended, going = data.t[data.over], data.t[~data.over]
    logs = float(np.log(ended).sum())

    def at_shape(shape: float) -> _Found:
        def slope_ratio(b: Float64s) -> Float64s:
            """Return the positive part of the slope of ln L divided by its negative part."""
            fall = float(b[0]) * float(ended.sum()) + float(np.sum(_relative_hazard(shape, b * going)))
            return np.array([data.ends * shape / fall])

        # The likelihood is flat at its maximum, so that an error of 1e−9 in b does not show in it.
        b = float(solve_decreasing(slope_ratio, [1.0], shape, rtol=1e-9).low[0])
        density = data.ends * (shape * math.log(b) - float(gammaln(shape))) + (shape - 1) * logs
        survived = float(np.sum(_log_upper_gamma(shape, b * going)))
        return _Found(b / shape, density - b * float(ended.sum()) + survived, shape)

    ends = np.array([0.02]), np.array([100.0])
    best = find_maximum(lambda shape: np.array([at_shape(float(shape[0])).log_likelihood]), *ends)
    return at_shape(float(best[0]))


def _log_upper_gamma(shape: float, x: Float64s) -> Float64s:
    """Return ln Q(k, x); for large x, where Q underflows, by the first terms of its expansion."""
    from scipy.special import gammaincc, gammaln

    q, far = gammaincc(shape, x), np.maximum(x, 100.0)
    late = (shape - 1) * np.log(far) - far - gammaln(shape) + np.log1p((shape - 1) / far)
    return np.where(q > 1e-290, np.log(np.maximum(q, 1e-290)), late)


def _relative_hazard(shape: float, x: Float64s) -> Float64s:
    """Return x times the hazard of the Gamma distribution of this shape: x^k·e^{−x}/Γ(k, x)."""
    from scipy.special import gammaln, xlogy

    return np.exp(xlogy(shape, x) - x - gammaln(shape) - _log_upper_gamma(shape, x))


_FITTERS: dict[str, Callable[[_Lifetimes], _Found]] = {
    # In units of the mean lifetime Σt/d the rate d/Σt is 1; d is the number of lifetimes that ended.
    "exponential": lambda data: _Found(1.0, -data.ends),
    "linear": _linear,
    "weibull": _weibull,
    "gamma": _gamma,
    "lomax": _lomax,
}


def _in_input_unit(name: str, found: _Found, unit: float, ends: int) -> DecayFit:
    spec = name if found.shape is None else f"{name}:{found.shape!r}"
    parameters = 1 if found.shape is None else 2
    log_likelihood = found.log_likelihood - ends * math.log(unit)
    return DecayFit(name, spec, found.rate / unit, parameters, log_likelihood, 0.0)


def _geometric(seen: Float64s, over: Bools) -> DecayFit:
    """Fit the probability of an end per step: ended lifetimes/steps. All lifetimes must end on whole steps.
    A step is one unit of time. The other classes are then judged by the probability of each step too."""
    steps = np.where(over, np.round(seen), np.floor(seen))
    ends, tries = int(over.sum()), float(steps.sum())
    off = np.abs(seen - steps)[over] > 1e-9 * np.maximum(seen[over], 1.0)
    if off.any() or tries <= ends:
        why = "lifetimes do not end on whole steps" if off.any() else "all lifetimes end at the first step"
        rate = ends / float(seen.sum())
        return DecayFit("geometric", "geometric", rate, 1, -math.inf, 0.0, why)
    rate = -math.log1p(-ends / tries)
    log_likelihood = ends * math.log(ends / tries) - (tries - ends) * rate
    return DecayFit("geometric", "geometric", rate, 1, log_likelihood, 0.0)


def _judged_by_steps(fit: DecayFit, seen: Float64s, over: Bools) -> DecayFit:
    """Return the fit with the likelihood of lifetimes that are known to one step: Σ_ended ln(S(t−1) − S(t)).
    Densities at whole numbers cannot be compared with probabilities of steps: a density that is small below
    the first step, where no lifetime can end, would be larger everywhere else."""
    with np.errstate(divide="ignore"):
        ended = np.log(fit.decay.survival(seen[over] - 1) - fit.decay.survival(seen[over]))
        going = np.log(fit.decay.survival(np.floor(seen[~over])))
    return replace(fit, log_likelihood=float(ended.sum() + going.sum()))


def _with_error(fit: DecayFit, empirical: Empirical, longest: float) -> DecayFit:
    """Return the fit with its relative error ∫|S − S_empirical| / ∫S_empirical up to the longest lifetime."""
    knots = np.unique(np.append(np.linspace(0, longest, _KNOTS), np.asarray(empirical.times)))
    knots = knots[knots <= longest]
    middle = (knots[1:] + knots[:-1]) / 2
    apart = np.abs(fit.decay.survival(middle) - empirical.survival(middle))
    error = float(np.sum(apart * np.diff(knots))) / float(empirical.integral(longest))
    return replace(fit, relative_error=error)
