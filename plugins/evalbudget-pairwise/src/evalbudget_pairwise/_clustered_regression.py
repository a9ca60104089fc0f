r"""Weighted least squares whose rows come in clusters: estimates, and what each cluster contributes to them.

With design X, response y, weights w and clusters g, the estimate is
:math:`\hat\beta = (X'WX)^{-1} X'Wy`, and cluster g moves it by its influence

.. math:: \psi_g = (X'WX)^{-1} \sum_{r \in g} w_r x_r (y_r - x_r'\hat\beta),
          \qquad \widehat{\operatorname{Cov}} = \frac{G}{G - p} \sum_g \psi_g \psi_g'

(Liang & Zeger; the factor is the usual one for few clusters). A linear combination of estimates from several
regressions on the same clusters has the same combination of their influences.

References:
    Liang & Zeger (1986), Longitudinal data analysis using generalized linear models, Biometrika 73.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.statistics import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ClusteredFit:
    """Estimates and influences.

    Attributes:
        value: shape (p,).
        influence: of every cluster, shape (n_clusters, p); 0 where a cluster has no row.
        clusters: that have rows.
        columns: p.
    """

    value: FloatArray
    influence: FloatArray
    clusters: int
    columns: int

    @property
    def covariance(self) -> FloatArray:
        """Of the estimates, shape (p, p); nan where there are no more clusters than columns."""
        free = self.clusters - self.columns
        if free < 1:
            return np.full((self.columns, self.columns), np.nan)
        return np.asarray(self.influence.T @ self.influence * (self.clusters / free))


def clustered_fit(
    design: FloatArray, response: FloatArray, weight: FloatArray, cluster: IntArray, n_clusters: int
) -> ClusteredFit:
    """Regress on columns that are not collinear.

    Args:
        design: X, shape (n, p), of full rank.
        response: y, shape (n,).
        weight: w, above 0, shape (n,).
        cluster: number of each row's cluster, below ``n_clusters``, shape (n,).
        n_clusters: rows of the influence.
    """
    weighted = design * weight[:, None]
    inverse = np.linalg.inv(design.T @ weighted)
    value = inverse @ (weighted.T @ response)
    scores = weighted * (response - design @ value)[:, None]
    summed = np.zeros((n_clusters, design.shape[1]))
    np.add.at(summed, cluster, scores)
    return ClusteredFit(value, summed @ inverse, int(np.unique(cluster).size), design.shape[1])


def is_full_rank(design: FloatArray) -> bool:
    """Whether no column follows from the others."""
    return bool(np.linalg.matrix_rank(np.unique(design, axis=0)) == design.shape[1])
