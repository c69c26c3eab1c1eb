"""Seconds of one Gaussian draw by each method, the cost model's prediction, and what `auto` takes.

Run `python benchmarks/gaussian_draws.py`: one BLAS thread, under two minutes. The rates it prints
are the constants SECONDS of `ncbayes.linalg.gaussian`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from ncbayes.base import Design, FloatArray, Precision
from ncbayes.linalg import designs, gaussian

# (points, coefficients or nodes, groups, coupled, structured)
GRID = [
    (400, 3, 1, False, False),
    (400, 30, 1, False, False),
    (2000, 100, 1, False, False),
    (20000, 50, 1, False, False),
    (2000, 300, 1, False, False),
    (4000, 1000, 1, False, False),
    (100, 500, 1, False, False),
    (200, 2000, 1, False, False),
    (1000, 1000, 1, False, False),
    (200, 31, 10, False, False),
    (200, 31, 10, True, False),
    (500, 200, 5, True, False),
    (1000, 20, 1, False, True),
    (2000, 40, 1, False, True),
    (4000, 60, 1, False, True),
    (1000, 40, 4, True, True),
]


@dataclass(frozen=True, eq=False)
class Pairs:
    """All products of two columns of `nodes` (N, d) as an operator: a design of d (d - 1) / 2."""

    nodes: FloatArray

    @property
    def edges(self) -> tuple[FloatArray, FloatArray]:
        return np.triu_indices(self.nodes.shape[1], 1)

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.nodes.shape
        return n, d * (d - 1) // 2

    @property
    def matvec_flops(self) -> float:
        n, d = self.nodes.shape
        return 2.0 * n * d**2

    def matvec(self, coef: FloatArray) -> FloatArray:
        full = np.zeros((self.nodes.shape[1],) * 2)
        full[self.edges] = coef
        return np.einsum("nd,nd->n", self.nodes @ full, self.nodes)

    def rmatvec(self, values: FloatArray) -> FloatArray:
        return (self.nodes.T @ (values[:, None] * self.nodes))[self.edges]

    def gram(self, weights: FloatArray) -> FloatArray:
        return designs.Dense(self.dense()).gram(weights)

    def gram_diagonal(self, weights: FloatArray) -> FloatArray:
        return Pairs(self.nodes**2).rmatvec(weights)

    def dense(self) -> FloatArray:
        first, second = self.edges
        return self.nodes[:, first] * self.nodes[:, second]


def conditional_of(
    n: int, size: int, groups: int, coupled: bool, structured: bool, rng: np.random.Generator
) -> gaussian.Conditional:
    """Weights as Polya-Gamma draws have them, scales as a horseshoe has them, or a random walk."""
    kind: Callable[[FloatArray], Design] = Pairs if structured else designs.Dense
    made = tuple(kind(rng.normal(size=(n, size))) for _ in range(groups))
    shape = groups, made[0].shape[1]
    weights = tuple(rng.uniform(0.05, 0.25, n) for _ in range(groups))
    if coupled:
        prior = Precision(np.full(shape, 41.0), np.full((groups - 1, shape[1]), -20.0))
    else:
        prior = Precision(np.exp(2 * rng.standard_cauchy(shape).clip(-4, 4)))
    return gaussian.Conditional(made, weights, prior, rng.normal(size=shape))


def seconds(call: Callable[[], object]) -> float:
    """Median of several repeats, 0.2 s in all; the first one warms up."""
    times: list[float] = []
    while not times or (sum(times) < 0.2 and len(times) < 500):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return float(np.median(times[len(times) > 1 :]))


@dataclass(frozen=True)
class Cell:
    """One method on one problem."""

    method: gaussian.Method
    shapes: gaussian.Shapes
    flops: float
    measured: float
    iterations: float

    @property
    def predicted(self) -> float:
        return gaussian.predicted_seconds(self.method, self.shapes, self.flops)


def measure(conditional: gaussian.Conditional, rng: np.random.Generator) -> dict[str, Cell]:
    """Every method that can draw from this law."""
    shapes = tuple(design.shape for design in conditional.designs)
    flops = sum(design.matvec_flops for design in conditional.designs)
    coupled = conditional.prior.between is not None
    cells = {}
    for method in gaussian.METHODS:
        if coupled and method in ("cholesky", "woodbury"):
            continue
        if method == "woodbury" and shapes[0][0] > 4 * shapes[0][1]:
            continue  # an N x N factorization here costs minutes and is never a candidate
        start, _ = gaussian.draw(conditional, rng, conditional.shift * 0, method)
        spent = seconds(lambda m=method, s=start: gaussian.draw(conditional, rng, s, m))
        _, info = gaussian.draw(conditional, rng, start, method)
        cells[method] = Cell(method, shapes, flops, spent, info["cg_iterations"])
    return cells


def fitted_rates(cells: list[Cell]) -> dict[str, float]:
    """Non-negative least squares of the counts of work on the seconds, in relative error."""
    kinds = list(gaussian.SECONDS)
    rows = []
    for cell in cells:
        iterations = cell.iterations or gaussian.USUAL_ITERATIONS
        counts = gaussian.work(cell.method, cell.shapes, cell.flops, iterations)
        rows.append([counts.get(kind, 0.0) / cell.measured for kind in kinds])
    matrix = np.array(rows)
    scale = matrix.max(axis=0)
    rates, _ = nnls(matrix / scale, np.ones(len(cells)))
    return dict(zip(kinds, rates / scale, strict=True))


def text(cell: Cell | None) -> str:
    """Milliseconds: measured (predicted)."""
    return "" if cell is None else f"{1e3 * cell.measured:.3g} ({1e3 * cell.predicted:.3g})"


def main() -> None:
    """Print the table and the rates."""
    rng = np.random.default_rng(1)
    everything: list[Cell] = []
    columns = ["N", "p", "G", "coupled", "design", *gaussian.METHODS, "steps", "auto", "auto/best"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for n, size, groups, coupled, structured in GRID:
        conditional = conditional_of(n, size, groups, coupled, structured, rng)
        cells = measure(conditional, rng)
        everything += cells.values()
        shapes, flops = next((cell.shapes, cell.flops) for cell in cells.values())
        auto = gaussian.choose_method(shapes, flops, coupled, not coupled)
        best = min(cell.measured for cell in cells.values())
        row = [str(n), str(shapes[0][1]), str(groups), "yes" if coupled else "no"]
        row += ["pairs" if structured else "dense"]
        row += [text(cells.get(method)) for method in gaussian.METHODS]
        row += [f"{cells['conjugate_gradients'].iterations:.0f}", auto]
        print("| " + " | ".join([*row, f"{cells[auto].measured / best:.2f}"]) + " |")
        sys.stdout.flush()
    print("\nMilliseconds a draw, measured (predicted).\n\nRates, seconds for a unit of work:\n")
    for kind, rate in fitted_rates(everything).items():
        print(f'    "{kind}": {rate:.1e},')


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
