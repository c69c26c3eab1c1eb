"""Do both forms of the regularized horseshoe sample the density that they name?

    python studies/slab_forms.py [--draws 10000] [--nuts-draws 4000] [--chains 4] [--ratio 1]

The paper states one prior ("conditional": theta given scales is N(0, (slab^-2 + (u tau)^-2)^-1))
and its algorithm samples another ("likelihood": N(theta; 0, (u tau)^2) exp(-theta^2 / (2 slab^2))).
A cycle of five angles, n = 200, uniform noise. Our sampler with either form against NumPyro's NUTS
with either, all four on the same data and noise: the largest difference of posterior means, in
Monte Carlo standard errors, over theta, log Z and log tau. The same form must agree and the other
one must be rejected, at a chance of one in a million for a false alarm; if not, the exit status is
1. NumPyro is the extra ``bench``.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import numpy as np
from scipy.stats import norm

import ncbayes as ncb
from ncbayes_bench import nuts_horseshoe as nuts
from ncbayes_bench.pooled import Pooled, pooled

FORMS = ("conditional", "likelihood")
FALSE_ALARM = 1e-6
# Small steps where the scales are small, or NUTS does not get there.
TARGET_ACCEPT = 0.95


def fitted(simulated: Any, form: str, ratio: float, **settings: Any) -> ncb.Posterior:
    """Our posterior; the noise depends on the seed alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ncb.FitWarning)
        return ncb.fit(
            simulated.model,
            simulated.data,
            noise=ncb.noise.Uniform(simulated.model.space),
            noise_ratio=ratio,
            prior=ncb.priors.Horseshoe(slab=1.0, slab_form=form),
            progress=False,
            **settings,
        )


def nuts_draws(
    contrast: Pooled, form: str, tune: int, draws: int, chains: int, seed: int
) -> tuple[np.ndarray, int]:
    """NUTS's draws (chain, draw, parameter) and the number of its divergences."""
    mcmc = nuts.sampler(contrast, form, tune, draws, chains, TARGET_ACCEPT)
    nuts.run(mcmc, contrast, form, seed)
    return nuts.their_draws(mcmc), nuts.divergences(mcmc)


def allowed(parameters: int) -> float:
    """What the largest of so many |z| exceeds with the chance of a false alarm."""
    return float(norm.isf(FALSE_ALARM / 2 / parameters))


def row(ours: str, theirs: str, z: np.ndarray) -> tuple[str, bool]:
    """A Markdown row, and whether it is as it must be."""
    largest = float(np.max(np.abs(z)))
    agrees = largest < allowed(len(z))
    right = agrees == (ours == theirs)
    verdict = ("agree" if agrees else "rejected") + ("" if right else ", UNEXPECTED")
    scalars = " | ".join(f"{each:+.1f}" for each in z[-2:])
    theta = np.max(np.abs(z[:-2]))
    return f"| {ours} | {theirs} | {theta:.1f} | {scalars} | {largest:.1f} | {verdict} |", right


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--nuts-draws", type=int, default=4000)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--ratio", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    simulated = ncb.datasets.torus_cycle(options.rows, seed=options.seed)
    counts = {"draws": options.draws, "tune": 1000, "chains": options.chains, "cores": 1}
    posteriors = {
        form: fitted(simulated, form, options.ratio, seed=options.seed, **counts) for form in FORMS
    }
    one, other = (pooled(each, simulated.model) for each in posteriors.values())
    if not np.array_equal(one.statistics, other.statistics):
        raise RuntimeError("the two fits were set against different noise")
    ours = {form: nuts.our_draws(each) for form, each in posteriors.items()}
    theirs = {}
    for form in FORMS:
        draws = options.nuts_draws
        theirs[form], bad = nuts_draws(one, form, 1000, draws, options.chains, options.seed)
        print(f"{form}: least effective draws {nuts.effective(ours[form]).min():.0f} ours, "
              f"{nuts.effective(theirs[form]).min():.0f} NUTS, whose divergences are {bad}\n",
              flush=True)  # fmt: skip
    parameters = ours[FORMS[0]].shape[-1]
    print(f"{parameters} parameters; the largest |z| of agreeing posteriors is below "
          f"{allowed(parameters):.1f} but for one time in a million\n")  # fmt: skip
    print("| ours | NUTS | largest abs z of theta | z of log Z | z of log tau | largest abs z | |")
    print("|---" * 7 + "|")
    pairs = [(a, b) for a in FORMS for b in FORMS]
    found = [row(a, b, nuts.z_scores(ours[a], theirs[b])) for a, b in pairs]
    print("\n".join(line for line, _ in found))
    sys.exit(0 if all(right for _, right in found) else 1)


if __name__ == "__main__":
    main()
