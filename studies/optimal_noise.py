"""How near is automatic noise to the best there is? Asymptotic widths on a grid. (docs/theory.md)

    python studies/optimal_noise.py

With p the model, q the noise, nu their ratio and g = (statistics, 1), a contrast of n rows has the
information ``n M(q)``, ``M(q) = integral of p nu q / (p + nu q) g g'``, and theta the covariance of
the first block of its inverse. In one and two dimensions the integral is a sum over a grid, and the
best noise for ``mean over k of [M(q)^-1]_kk / [exact]_kk`` is found by descent over densities on
the grid (Chehab, Gramfort and Hyvarinen 2022 ask which it is). Printed are intervals against exact
ones, in the mean over parameters: of noise made as ``noise="auto"`` does (0.8 of the model and 0.2
matched to the data), of the model itself, of matched noise, and of the best noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

RATIOS = (1.0, 5.0, 20.0)
TURN = 2 * np.pi


def angle() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A von Mises angle of concentration 2; matched noise is the same family."""
    x = np.arange(400) * TURN / 400
    log_p = 2 * np.cos(x)
    return np.column_stack([np.cos(x), np.sin(x)]), log_p, log_p


def positive() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A gamma distribution of shape 3; matched noise is the same family."""
    x = (np.arange(600) + 0.5) / 30
    log_p = 2 * np.log(x) - x
    return np.column_stack([np.log(x), x]), log_p, log_p


def tailed() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A normal with a quartic term, two bumps; matched noise is a Student t."""
    x = np.linspace(-6, 6, 600)
    log_p = 1.5 * x**2 - 0.4 * x**4
    sd = np.sqrt(np.sum(softmax(log_p) * x**2))
    return np.column_stack([x, x**2, x**4]), log_p, -3 * np.log1p((x / sd) ** 2 / 3)


def couple() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two angles with a coupling of 2 between them; matched noise has independent angles."""
    grid = np.arange(50) * TURN / 50
    one, other = (each.ravel() for each in np.meshgrid(grid, grid, indexing="ij"))
    columns = [f(a) for a in (one, other, one - other, one + other) for f in (np.cos, np.sin)]
    return np.column_stack(columns), np.cos(one) + 2 * np.cos(one - other), np.cos(one)


def plane() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two reals with correlation 0.8; matched noise is a Student t of the same covariance."""
    grid = np.linspace(-5, 5, 60)
    x, y = (each.ravel() for each in np.meshgrid(grid, grid, indexing="ij"))
    square = (x**2 + y**2 - 1.6 * x * y) / 0.36
    return np.column_stack([x, y, x**2, y**2, x * y]), -square / 2, -3.5 * np.log1p(square / 3)


FAMILIES: dict[str, Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]]] = {
    "von Mises, 1-D": angle,
    "gamma, 1-D": positive,
    "two bumps, 1-D": tailed,
    "torus graph, 2-D": couple,
    "normal, 2-D": plane,
}


def inverse(g: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The inverse information, scaled by the columns of g for its sake."""
    scale = np.sqrt((weights @ g**2) / weights.sum())
    matrix = (g / scale).T @ (weights[:, None] * (g / scale))
    return np.asarray(np.linalg.inv(matrix) / np.outer(scale, scale))


def widths(g: np.ndarray, p: np.ndarray, q: np.ndarray, nu: float) -> np.ndarray:
    """Variances of theta against the exact ones, (parameter,)."""
    exact = inverse(g, p)
    return np.diag(inverse(g, p * nu * q / (p + nu * q)))[:-1] / np.diag(exact)[:-1]


def best(g: np.ndarray, p: np.ndarray, start: np.ndarray, nu: float) -> np.ndarray:
    """The density with the smallest mean of ``widths``, from a start."""
    exact = np.diag(inverse(g, p))[:-1]
    wanted = np.append(1 / exact, 0.0) / len(exact)

    def value(log_q: np.ndarray) -> tuple[float, np.ndarray]:
        q = softmax(log_q)
        found = inverse(g, p * nu * q / (p + nu * q))
        away = g @ found * np.sqrt(wanted)
        slope = -nu * p**2 / (p + nu * q) ** 2 * np.sum(away**2, axis=1)
        return float(np.sum(np.diag(found) * wanted)), q * (slope - q @ slope)

    done = minimize(value, np.log(start), jac=True, method="L-BFGS-B",
                    options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-12})  # fmt: skip
    return np.asarray(softmax(done.x))


def main() -> None:
    """Print the table."""
    print("| family | noise ratio | model and matched | model | matched | best |")
    print("|---|---|---|---|---|---|")
    for name, make in FAMILIES.items():
        statistics, log_p, log_matched = make()
        g = np.column_stack([statistics, np.ones(len(statistics))])
        p, matched = (np.exp(each - logsumexp(each)) for each in (log_p, log_matched))
        for nu in RATIOS:
            noises = {"auto": 0.8 * p + 0.2 * matched, "model": p, "matched": matched}
            noises["best"] = best(g, p, noises["auto"], nu)
            row = [np.sqrt(widths(g, p, q, nu)).mean() for q in noises.values()]
            print(f"| {name} | {nu:g} | " + " | ".join(f"{each:.3f}" for each in row) + " |")


if __name__ == "__main__":
    main()
