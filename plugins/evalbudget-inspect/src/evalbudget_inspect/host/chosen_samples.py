"""Samples that the host's limits leave of a task, where a source of ours holds them back from the host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from inspect_ai.dataset import Dataset, MemoryDataset, Sample
from inspect_ai.log import EvalConfig
from numpy.typing import NDArray

from evalbudget.errors import InvalidInputError
from evalbudget.repeats import require_clusters
from evalbudget.repeats.estimates import strata_labels
from evalbudget.secrets import without_known
from evalbudget_inspect.host.private import slice_dataset


def number_samples(dataset: Iterable[Sample]) -> None:
    """Give samples without an id the one that the host would give them.

    Raises:
        InvalidInputError: see :func:`refuse_keys`.
    """
    for number, sample in enumerate(dataset):
        if sample.id is None:
            sample.id = number + 1
    refuse_keys(dataset)


def refuse_keys(dataset: Iterable[Sample]) -> None:
    """Refuse ids that hold the value of a secret: they stand in all logs, stores and tables.

    Raises:
        InvalidInputError: one does.
    """
    ids = [str(sample.id) for sample in dataset]
    for number, (name, left) in enumerate(zip(ids, without_known(ids), strict=True)):
        if name != left:
            raise InvalidInputError(
                f"the id of sample {number + 1}, {left!r}, holds the value of a secret, a variable's or an "
                "argument's, where *** stands, and would be written into logs; give that sample another id"
            )


def emptied(dataset: Dataset) -> Dataset:
    """A dataset without samples, with the name and location that the log shall show."""
    nothing: list[Sample] = []
    return MemoryDataset(nothing, name=dataset.name, location=dataset.location, shuffled=dataset.shuffled)


def strata_of_items(samples: Sequence[Sample], field: str | None) -> tuple[str, ...] | None:
    """What a field of their metadata says of samples, as labels of strata; None where there is no field.

    Raises:
        InvalidInputError: no sample has it, or no two have the same.
    """
    if field is None:
        return None
    metadata = [sample.metadata or {} for sample in samples]
    known = {name for each in metadata for name in each}
    return strata_labels([each.get(field) for each in metadata], field, known)


def clusters_of_samples(samples: Sequence[Sample], field: str, said: str = "") -> NDArray[np.int64]:
    """Number of each sample's cluster, by a field of their metadata.

    Args:
        samples: of the run, with ids.
        field: of their metadata.
        said: as in :func:`~evalbudget.repeats.require_clusters`.

    Raises:
        InvalidInputError: a sample lacks the field.
    """
    metadata = [sample.metadata or {} for sample in samples]
    return require_clusters(
        [each.get(field) for each in metadata],
        field,
        [str(sample.id) for sample in samples],
        known={name for each in metadata for name in each},
        said=said,
        what="sample",
    )


def chosen_samples(dataset: Dataset, config: EvalConfig, why: str) -> list[Sample]:
    """What ``--limit``, ``--sample-id`` and ``--sample-shuffle`` leave.

    Args:
        dataset: all samples, with ids.
        config: of the run.
        why: ends the sentence that begins with a shuffle without a seed.

    Raises:
        InvalidInputError: the samples are shuffled in an order that nobody knows.
    """
    if config.limit is not None and config.sample_shuffle is not None and not dataset.shuffled:
        if config.sample_shuffle is True:
            raise InvalidInputError(
                f"--sample-shuffle without a seed would give --limit {why}; add a seed: --sample-shuffle 42"
            )
        dataset = dataset[0 : len(dataset)]
        dataset.shuffle(int(config.sample_shuffle))
    return list(slice_dataset(dataset, config.limit, config.sample_id))
