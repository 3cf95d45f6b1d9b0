"""Symbolic sizes: sums of products of names, such as `2*n1+1`, quotients, and broadcasts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from graphcore.inference.handles import DimensionHandle


class Quotient(msgspec.Struct, frozen=True):
    """A quotient, rounded down, that cannot be simplified: `(n1+1)//2`."""

    dividend: Expression
    divisor: Expression

    def __str__(self) -> str:
        return f"{_operand(self.dividend)}//{_operand(self.divisor)}"

    @property
    def names(self) -> frozenset[str]:
        """All names in it."""
        return self.dividend.names | self.divisor.names

    def value(self, numbers: Mapping[str, int]) -> int:
        """Evaluate with numbers for the names."""
        return self.dividend.value(numbers) // self.divisor.value(numbers)

    def replaced(self, values: Mapping[str, Expression]) -> Expression:
        """Substitute expressions for names."""
        return self.dividend.replaced(values) // self.divisor.replaced(values)


class Broadcast(msgspec.Struct, frozen=True):
    """The broadcast of several sizes, where sizes of 1 do not count: `broadcast(n1,n2)`."""

    sizes: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"broadcast({','.join([str(size) for size in self.sizes])})"

    @property
    def names(self) -> frozenset[str]:
        """All names in it."""
        return frozenset().union(*[size.names for size in self.sizes])

    def value(self, numbers: Mapping[str, int]) -> int:
        """Evaluate with numbers for the names; all sizes other than 1 must be equal."""
        return next((number for size in self.sizes if (number := size.value(numbers)) != 1), 1)

    def replaced(self, values: Mapping[str, Expression]) -> Expression:
        """Substitute expressions for names."""
        return broadcast(*[size.replaced(values) for size in self.sizes])


_Factors = tuple[str | Quotient | Broadcast, ...]
_Terms = tuple[tuple[_Factors, int], ...]


class Expression(msgspec.Struct, frozen=True):
    """A sum: a mapping of terms (products of names and quotients) to coefficients. Equal sums are equal values."""

    terms: _Terms = ()

    @property
    def constant(self) -> int | None:
        """The value if the expression contains no names, else None."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def name(self) -> str:
        """The name if the expression is a single name, else ""."""
        if len(self.terms) != 1:
            return ""
        factors, coefficient = self.terms[0]
        alone = factors[0] if coefficient == 1 and len(factors) == 1 else ""
        return alone if isinstance(alone, str) else ""

    @property
    def names(self) -> frozenset[str]:
        """All names in it."""
        factor_names: set[str] = set()
        for factors, _ in self.terms:
            for factor in factors:
                factor_names |= {factor} if isinstance(factor, str) else factor.names
        return frozenset(factor_names)

    def __str__(self) -> str:
        text = ""
        shown = [([str(factor) for factor in factors], coefficient) for factors, coefficient in self.terms]
        for factors, coefficient in sorted(shown, key=lambda term: (-len(term[0]), term[0])):
            size = abs(coefficient)
            parts = factors if size == 1 and factors else [str(size), *factors]
            body = parts[0] if len(parts) == 1 else "*".join([f"({part})" if "//" in part else part for part in parts])
            body = f"({body})" if coefficient < 0 and "//" in body and len(parts) == 1 else body
            text += ("-" if coefficient < 0 else "+" if text else "") + body
        return text or "0"

    def __add__(self, other: Expression) -> Expression:
        return _sum([*self.terms, *other.terms])

    def __sub__(self, other: Expression) -> Expression:
        return _sum([*self.terms, *[(factors, -coefficient) for factors, coefficient in other.terms]])

    def __mul__(self, other: Expression) -> Expression:
        return _sum([(tuple(sorted(f + g, key=str)), a * b) for f, a in self.terms for g, b in other.terms])

    def __floordiv__(self, other: Expression) -> Expression:
        """The quotient, rounded down and simplified as far as possible."""
        exact = [_quotient(term, other.terms[0]) for term in self.terms] if len(other.terms) == 1 else [None]
        if all(term is not None for term in exact):
            return _sum([term for term in exact if term is not None])
        divisor = other.constant
        if divisor is None or divisor <= 0:
            return _alone(Quotient(self, other))
        whole = _sum([(factors, coefficient // divisor) for factors, coefficient in self.terms if not factors or not coefficient % divisor])
        rest = _sum([(factors, coefficient) for factors, coefficient in self.terms if factors and coefficient % divisor])
        number = dict(self.terms).get((), 0)
        if not rest.terms:
            return whole
        whole = whole - constant(number // divisor)
        return whole + _alone(Quotient(rest + constant(number), other))

    def value(self, numbers: Mapping[str, int]) -> int:
        """Evaluate with numbers for the names."""
        total = 0
        for factors, coefficient in self.terms:
            for factor in factors:
                coefficient *= numbers[factor] if isinstance(factor, str) else factor.value(numbers)
            total += coefficient
        return total

    def replaced(self, values: Mapping[str, Expression]) -> Expression:
        """Substitute expressions for names."""
        if not self.names & values.keys():
            return self
        total = Expression()
        for factors, coefficient in self.terms:
            product = constant(coefficient)
            for factor in factors:
                product = product * (values.get(factor, symbol(factor)) if isinstance(factor, str) else factor.replaced(values))
            total = total + product
        return total


def constant(number: int) -> Expression:
    """Make an expression of a number."""
    return Expression((((), number),) if number else ())


def symbol(name: str) -> Expression:
    """Make an expression of a name."""
    return _alone(name)


def broadcast(*sizes: Expression) -> Expression:
    """The broadcast of sizes: all that are not 1 must be equal."""
    distinct: dict[Expression, None] = {}
    for size in sizes:
        factors = size.terms[0][0] if len(size.terms) == 1 and size.terms[0][1] == 1 else ()
        inner = factors[0] if len(factors) == 1 else None
        distinct.update(dict.fromkeys(inner.sizes if isinstance(inner, Broadcast) else (size,)))
    constants = [size for size in distinct if size.constant is not None]
    for size in constants:
        if size.constant != 1:
            return size
    left = sorted([size for size in distinct if size.constant is None], key=str)
    if len(left) < 2:
        return left[0] if left else constants[0]
    return _alone(Broadcast(tuple(left)))


def _alone(factor: str | Quotient | Broadcast) -> Expression:
    return Expression((((factor,), 1),))


def expression_of(dim: DimensionHandle | int | None) -> Expression | None:
    """The expression of a size, None if it is unknown and has no name."""
    if isinstance(dim, DimensionHandle):
        if dim.value >= 0:
            return constant(dim.value)
        return dim.origin if isinstance(dim.origin, Expression) else None
    return None if dim is None or dim < 0 else constant(dim)


def unknown_result(operator: str, first: DimensionHandle | int | None, second: DimensionHandle | int | None) -> DimensionHandle:
    """A new unknown dimension for the sum, difference, product or quotient of two.

    It has a name if both operands have.
    """
    a = expression_of(first)
    b = None if a is None else expression_of(second)
    if a is None or b is None:
        return DimensionHandle()
    result = a + b if operator == "+" else a - b if operator == "-" else a * b if operator == "*" else a // b
    size = result.constant
    return DimensionHandle(-1, result) if size is None or size < 0 else DimensionHandle(size)


def broadcast_result(first: DimensionHandle, second: DimensionHandle) -> DimensionHandle:
    """A new unknown dimension for the broadcast of two unknown ones; it has a name if both have."""
    a = expression_of(first)
    b = None if a is None else expression_of(second)
    return DimensionHandle() if a is None or b is None else DimensionHandle(-1, broadcast(a, b))


def _operand(expression: Expression) -> str:
    text = str(expression)
    return text if text.isalnum() else f"({text})"


def _sum(terms: Iterable[tuple[_Factors, int]]) -> Expression:
    collected: dict[_Factors, int] = {}
    for factors, coefficient in terms:
        collected[factors] = collected.get(factors, 0) + coefficient
    return Expression(tuple(sorted([(factors, coefficient) for factors, coefficient in collected.items() if coefficient], key=_order)))


def _order(term: tuple[_Factors, int]) -> list[str]:
    return [str(factor) for factor in term[0]]


def _quotient(term: tuple[_Factors, int], divisor: tuple[_Factors, int]) -> tuple[_Factors, int] | None:
    """The exact quotient of two terms, None if there is none."""
    factors, coefficient = list(term[0]), term[1]
    if coefficient % divisor[1]:
        return None
    for name in divisor[0]:
        if name not in factors:
            return None
        factors.remove(name)
    return tuple(factors), coefficient // divisor[1]
