#!/usr/bin/env python3
"""Values of elementary functions, computed with many more digits than a float64 has and rounded once.

    python tools/elementary.py | gzip -9n > testdata/elementary/table.tsv.gz

Each line is an op, the real and the imaginary part of its operands, and those of the result, as hexadecimal floats;
real functions have no imaginary parts. The numbers are those at which functions go wrong: zeros of either sign,
subnormal numbers, neighbours of 1 and of branch points, the ends of the range of exp, and of squares, the largest
number. A zero is taken for a number of its sign that is far smaller than any float64, so results lie on the right side
of a branch cut. What happens at infinities and NaN follows the C standard's Annex G, not from numbers, and is not here.
Needs mpmath.
"""

import itertools
import sys

import mpmath
from mpmath import mp, mpc, mpf

mp.prec = 7000
TINY = mpf(2) ** -3000

REAL = [0.0, 5e-324, 1e-310, 2.2250738585072014e-308, 1e-200, 1e-160, 1e-20, 1e-8, 0.5, 1 - 2**-53, 1.0, 1 + 2**-52, 1.5, 2.0, 3.0, 10.0, 100.0, 708.0, 709.9, 745.0, 1e5,
        1e8, 1e154, 1e160, 1e300, sys.float_info.max]
PARTS = [0.0, 5e-324, 1e-160, 1e-9, 0.3, 1.0, 1 + 2**-52, 2.0, 30.0, 709.5, 1e9, 1e160, 1.7e308]


def exact(x):
    if x == 0:
        return TINY if str(x) == "0.0" else -TINY
    return mpf(x)


def rounded(x):
    try:
        return float(x)
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")


def cbrt(z):
    return mp.exp(mp.log(z) / 3)


def real_cbrt(x):
    return mp.cbrt(x) if x > 0 else -mp.cbrt(-x)


FUNCTIONS = {
    "stablehlo.exponential": mp.exp, "stablehlo.exponential_minus_one": lambda z: mp.exp(z) - 1, "stablehlo.log": mp.log, "stablehlo.log_plus_one": lambda z: mp.log(1 + z),
    "stablehlo.sqrt": mp.sqrt, "stablehlo.rsqrt": lambda z: 1 / mp.sqrt(z), "stablehlo.sine": mp.sin, "stablehlo.cosine": mp.cos, "stablehlo.tan": mp.tan, "stablehlo.tanh": mp.tanh,
    "stablehlo.logistic": lambda z: 1 / (1 + mp.exp(-z)), "chlo.sinh": mp.sinh, "chlo.cosh": mp.cosh, "chlo.asinh": mp.asinh, "chlo.acosh": mp.acosh, "chlo.atanh": mp.atanh,
    "chlo.asin": mp.asin, "chlo.acos": mp.acos, "chlo.atan": mp.atan,
}
POLES = {  # where zero or a branch point has no value
    "stablehlo.log": lambda z: z == 0, "stablehlo.rsqrt": lambda z: z == 0, "stablehlo.cbrt": lambda z: z == 0, "stablehlo.sign": lambda z: z == 0,
    "stablehlo.log_plus_one": lambda z: z == -1, "chlo.atanh": lambda z: z in (1, -1), "chlo.atan": lambda z: z in (1j, -1j),
}
DOMAIN = {"stablehlo.log": lambda x: x > 0, "stablehlo.log_plus_one": lambda x: x > -1, "stablehlo.sqrt": lambda x: x >= 0, "stablehlo.rsqrt": lambda x: x > 0,
          "chlo.acosh": lambda x: x >= 1, "chlo.atanh": lambda x: -1 < x < 1, "chlo.asin": lambda x: -1 <= x <= 1, "chlo.acos": lambda x: -1 <= x <= 1,
          "chlo.lgamma": lambda x: x > 0, "chlo.digamma": lambda x: 0 < x, "chlo.erf_inv": lambda x: -1 < x < 1}


def signed(xs):
    return [s * x for x in xs for s in (1.0, -1.0)]


def real_functions():
    yield from FUNCTIONS.items()
    yield "stablehlo.cbrt", real_cbrt  # of which 0 is exact
    yield "chlo.erf", mp.erf
    yield "chlo.erfc", mp.erfc
    yield "chlo.erf_inv", mp.erfinv
    yield "chlo.lgamma", mp.loggamma
    yield "chlo.digamma", mp.digamma


def row(name, numbers):
    print("\t".join([name] + [x.hex() for x in numbers]), flush=True)


def real_rows():
    for name, f in real_functions():
        for x in signed(REAL):
            slow = name in ("chlo.lgamma", "chlo.digamma", "chlo.erf_inv", "chlo.erf", "chlo.erfc")
            if not DOMAIN.get(name, lambda x: True)(x) or slow and abs(x) > 1e8 or name == "chlo.erf_inv" and 0.6 < abs(x):
                continue
            with mp.workprec(400 if slow else mp.prec):
                try:
                    v = f(mpf(x) if slow else exact(x))
                except (ValueError, ZeroDivisionError, mpmath.libmp.NoConvergence):
                    continue
                if not ((slow or name == "stablehlo.cbrt") and x == 0):
                    row(name, [x, rounded(v.real if isinstance(v, mpc) else v)])
    for y, x in itertools.product(signed([0.0, 5e-324, 1e-300, 1.0, 1e300, sys.float_info.max]), repeat=2):
        if x != 0 or y != 0:
            row("stablehlo.atan2", [y, x, rounded(mp.atan2(exact(y), exact(x)))])


def complex_rows():
    functions = dict(FUNCTIONS)
    functions["stablehlo.cbrt"] = cbrt
    functions["stablehlo.sign"] = lambda z: z / abs(z)
    for name, f in functions.items():
        for x, y in itertools.product(signed(PARTS), repeat=2):
            if POLES.get(name, lambda z: False)(complex(x, y)):
                continue
            try:
                v = mpc(f(mpc(exact(x), exact(y))))
            except (ValueError, ZeroDivisionError, OverflowError, MemoryError, mpmath.libmp.NoConvergence):
                continue
            parts = [rounded(v.real), rounded(v.imag)]
            if 0 not in (x, y) or float("inf") not in map(abs, parts):  # else that may be the far smaller number's
                row(name, [x, y, *parts])


if sys.argv[1:] != ["complex"]:
    real_rows()
complex_rows()
