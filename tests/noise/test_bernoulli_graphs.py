import math

import numpy as np
import pytest

from ncbayes.base import InputError
from ncbayes.noise import BernoulliGraphs, matched
from ncbayes.spaces import Graphs, GraphSets
from ncbayes.testing import check_noise

SETS = GraphSets((Graphs(3), Graphs(4)))


def test_the_density_is_that_of_independent_edges():
    noise = BernoulliGraphs(Graphs(3), 0.2)
    x = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 1], [0.5, 0, 0]])
    expected = np.log([0.8**3, 0.2 * 0.8**2, 0.2**3])
    assert noise.log_density(x)[:3] == pytest.approx(expected)
    assert noise.log_density(x)[3] == -math.inf
    assert noise.dimension == 3


def test_on_several_sets_it_is_relative_to_uniform_graphs():
    noise = BernoulliGraphs(SETS, 0.2, (0.3, 0.7))
    x = np.array([[1.0, 0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 1]])
    expected = np.log([0.3 * 0.2 * 0.8**2 * 2**3, 0.7 * 0.2**2 * 0.8**4 * 2**6])
    assert noise.log_density(x) == pytest.approx(expected)


def test_noise_is_matched_to_the_density_of_the_data():
    x = np.array([[1.0, 0, 0], [1, 1, 0], [0, 0, 0]])
    assert matched(Graphs(3), x).probability == pytest.approx(4 / 11)
    rows = np.array([[1.0, 0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 1, 1], [1, 0, 0, 0, 0, 0, 1]])
    both = matched(SETS, rows)
    assert both.probability == pytest.approx(6 / 17)
    assert np.asarray(both.shares).tolist() == [0.4, 0.6]


@pytest.mark.parametrize("space", [Graphs(8), Graphs(4, directed=True)], ids=str)
def test_the_noise_keeps_the_contract(space, seed):
    check_noise(BernoulliGraphs(space, 0.15), space, seed=seed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 0.5), r"BernoulliGraphs\(space, ...\) needs a space of graphs, .* got 3$"),
        (
            (Graphs(3), 1.0),
            r"BernoulliGraphs\(probability=...\) must lie above 0 and below 1, got 1",
        ),
        ((SETS, 0.5), r"BernoulliGraphs\(shares=...\) must be 2 positive numbers with sum 1"),
    ],
)
def test_noise_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        BernoulliGraphs(*arguments)
