"""Numbers computed from the columns of a record: ``rate = "citations / 4 / y"``, ``weight = "price"``.

An expression has numbers, columns, ``+ - * /``, brackets, and the functions ``min``, ``max``, ``sqrt`` and
``log1p``. A text without any of these signs is a column. Within an expression, the name of a column that is
no plain word stands in quotation marks. In a rate, ``s m h d w y`` are units of time. Units are checked like
those of physics: a rate must be a number per time, and only numbers of the same unit can be added. Nothing
else is allowed, so that an expression cannot do any harm.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from afresh.values.arrays import Bools, Float64s
from afresh.values.errors import UsageError
from afresh.values.units import UNIT_SECONDS

_OPERATIONS: dict[type[ast.operator], Callable[[Float64s, Float64s], Float64s]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
}
_FUNCTIONS: dict[str, Callable[..., Float64s]] = {
    "min": lambda *numbers: np.minimum.reduce(np.broadcast_arrays(*numbers)),
    "max": lambda *numbers: np.maximum.reduce(np.broadcast_arrays(*numbers)),
    "sqrt": np.sqrt,
    "log1p": np.log1p,
}
_ONE_ARGUMENT = ("sqrt", "log1p")
_SIGNS = "+-*/()\"'"
_LONGEST = 200
_RIGHT = "write numbers, columns, + - * / ( ), min, max, sqrt and log1p, such as citations / 4"


@dataclass(frozen=True, slots=True)
class RecordExpression:
    """An expression whose value is a number of 0 or more for each record. With ``per_time`` it is a rate:
    units of time are known, and the value is per second.

    >>> rate = RecordExpression.parse("rate", "citations / 4 / y", per_time=True)
    >>> rate.columns, float(rate.values({"citations": np.array([31557600.0])})[0])
    (('citations',), 0.25)
    >>> RecordExpression.parse("rate", "citations / 4", per_time=True)
    Traceback (most recent call last):
    afresh.values.errors.UsageError: rate: 'citations / 4' is no rate: divide by a unit of time, such as / y
    """

    text: str
    columns: tuple[str, ...]
    _tree: ast.expr
    per_time: bool

    @classmethod
    def parse(cls, setting: str, text: str, *, per_time: bool = False) -> RecordExpression:
        """Read the expression of a setting, and check it; raise ``UsageError`` if it is wrong."""
        if len(text) > _LONGEST:
            raise UsageError(f"{setting}: an expression has at most {_LONGEST} characters")
        tree: ast.expr = ast.Constant(text)
        if any(sign in text for sign in _SIGNS):
            try:
                tree = ast.parse(text.strip(), mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                raise UsageError(f"{setting}: {text!r} cannot be read: {_RIGHT}") from None
        units = UNIT_SECONDS if per_time else {}
        check = _Check(setting, text, units)
        dimension = check.dimension(tree)
        if per_time and dimension != -1:
            raise UsageError(f"{setting}: {text!r} is no rate: divide by a unit of time, such as / y")
        if not check.columns:
            raise UsageError(f"{setting}: {text!r} names no column of the relation")
        return cls(text, tuple(check.columns), tree, per_time)

    def values(self, columns: Mapping[str, Float64s]) -> Float64s:
        """Return the value for each record, from the numbers in its columns; NaN if it cannot be computed."""
        with np.errstate(all="ignore"):
            found = _compute(self._tree, columns, UNIT_SECONDS if self.per_time else {})
            first = columns[self.columns[0]]
            return np.asarray(np.broadcast_to(found, first.shape), dtype=np.float64)


def is_usable(values: Float64s) -> Bools:
    """Return which values can be a rate or a weight: finite numbers of 0 or more."""
    return np.asarray((values >= 0) & np.isfinite(values), dtype=np.bool_)


class _Check:
    """Collects the columns of an expression, and computes its dimension: 0 for numbers, 1 for times."""

    def __init__(self, setting: str, text: str, units: Mapping[str, float]) -> None:
        self._setting, self._text, self._units = setting, text, units
        self.columns: dict[str, None] = {}

    def dimension(self, tree: ast.expr) -> int:
        match tree:
            case ast.BinOp(left, operator, right) if type(operator) in _OPERATIONS:
                return self._of_operation(operator, self.dimension(left), self.dimension(right))
            case ast.Call(ast.Name(name), arguments, []) if name in _FUNCTIONS and arguments:
                return self._of_function(name, [self.dimension(one) for one in arguments])
            case ast.Constant(bool()):
                raise self._fault("has something that is no number")
            case ast.Constant(int() | float() as number) if math.isfinite(number):
                return 0
            case ast.Name(name) if name in self._units:
                return 1
            case ast.Name(name) | ast.Constant(str() as name) if name:
                self.columns[name] = None
                return 0
        raise self._fault("has something that is not allowed")

    def _of_operation(self, operator: ast.operator, left: int, right: int) -> int:
        if isinstance(operator, ast.Mult | ast.Div):
            return left + right if isinstance(operator, ast.Mult) else left - right
        if left != right:
            raise self._fault("adds a number and a time")
        return left

    def _of_function(self, name: str, dimensions: list[int]) -> int:
        if name in _ONE_ARGUMENT and len(dimensions) != 1:
            raise self._fault(f"gives {name} more than one number")
        if len(set(dimensions)) > 1 or (name in _ONE_ARGUMENT and dimensions[0]):
            raise self._fault(f"gives {name} numbers of different units")
        return dimensions[0]

    def _fault(self, problem: str) -> UsageError:
        return UsageError(f"{self._setting}: {self._text!r} {problem}: {_RIGHT}")


def _compute(tree: ast.expr, columns: Mapping[str, Float64s], units: Mapping[str, float]) -> Float64s:
    match tree:
        case ast.BinOp(left, operator, right):
            both = (_compute(left, columns, units), _compute(right, columns, units))
            return _OPERATIONS[type(operator)](*both)
        case ast.Call(ast.Name(name), arguments, _):
            return _FUNCTIONS[name](*(_compute(one, columns, units) for one in arguments))
        case ast.Name(name) | ast.Constant(str() as name):
            return np.asarray(units[name]) if name in units else columns[name]
        case ast.Constant(int() | float() as number):
            return np.asarray(float(number))
    raise AssertionError(tree)  # ``parse`` has refused everything else
