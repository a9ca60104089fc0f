"""Files of item factors: saved ones, and a cache of trained ones keyed by what they were trained on."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalbudget.errors import InvalidInputError, reason
from evalbudget.races.prediction._factor_model import FactorModel, Fold
from evalbudget.races.prediction._score_table import ScoreTable, table_of
from evalbudget.recorded import _npz
from evalbudget.shown import shown_logger

log = shown_logger(__name__)

CACHE_VARIABLE = "EVALBUDGET_CACHE"
_FORMAT = "2"
"""Part of the key: raise it when training changes."""


def is_factor_file(path: str | Path) -> bool:
    """Whether this is an intact archive with item factors ``V``."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "V.npy" in archive.namelist()
    except Exception:  # whatever the reader of zip files raises on what is none
        return False


def load_factors(path: str | Path, items: Sequence[str] | None = None) -> FactorModel:
    """Read an ``.npz`` with V (n_items, rank) and optionally U (n_models, rank) and items (ids).

    What :func:`save_factors` wrote comes back whole, calibration included.

    Args:
        path: of the archive.
        items: ids of V's rows, where the file has none; default "0", "1" ...

    Raises:
        InvalidInputError: the file cannot be read or is damaged, has no V, or its shapes do not fit.
    """
    arrays = _npz.read(Path(path))
    if "V" not in arrays:
        raise InvalidInputError(
            f"{path} has no array V, only {', '.join(sorted(arrays)) or 'nothing'}; "
            "save item factors as V (items x rank) and model factors as U"
        )
    for name, array in arrays.items():
        if array.dtype.kind == "c":
            raise InvalidInputError(f"{path}: {name} holds complex numbers; factors are real")
    try:
        names = [str(name) for name in arrays["items"]] if "items" in arrays else items
        if "prior_mean" in arrays:
            return _unpack(arrays)
        return FactorModel.of_factors(arrays["V"], names, arrays.get("U"))
    except (InvalidInputError, KeyError, TypeError, ValueError) as ex:
        raise InvalidInputError(f"{path}: {ex}") from ex


def save_factors(path: str | Path, model: FactorModel) -> None:
    """Write a trained model as an ``.npz`` that :func:`load_factors` reads.

    Raises:
        InvalidInputError: the file cannot be written.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # readers, and other processes that train the same, see all of it or nothing
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".factors-", delete=False) as file:
            temporary = Path(file.name)
            try:
                np.savez(file, allow_pickle=False, **_pack(model))
            except BaseException:
                file.close()
                temporary.unlink(missing_ok=True)
                raise
        temporary.replace(path)
    except OSError as ex:
        raise InvalidInputError(f"{path} cannot be written: {reason(ex)}") from ex


def train_cached(
    scores: ArrayLike | ScoreTable, items: Sequence[str], *, seed: int = 0, folder: str | Path | None = None
) -> FactorModel:
    """:meth:`FactorModel.train`, done once for the same scores, ids and arguments.

    A cache that cannot be read or written is said in the log and does no harm.

    Args:
        scores: history, shape (n_models, n_items), as :meth:`FactorModel.train`.
        items: ids.
        seed: of cross-validation.
        folder: of the cache; default ``$EVALBUDGET_CACHE``, or the user's cache folder.

    Raises:
        InvalidInputError: see :meth:`FactorModel.train`.
    """
    table = scores if isinstance(scores, ScoreTable) else table_of(np.asarray(scores, dtype=np.float64))
    try:
        place = Path(folder or cache_folder())
    except RuntimeError as ex:  # nobody's home
        log.warning("trained factors are not kept: %s Name a folder in %s", ex, CACHE_VARIABLE)
        return FactorModel.train(table, items, seed=seed)
    path = place / f"factors-{_key(table, items, (None, None, seed))}.npz"
    if path.is_file():
        try:
            return load_factors(path)
        except InvalidInputError as ex:
            log.warning("factors are trained again: %s", ex)
    model = FactorModel.train(table, items, seed=seed)
    try:
        save_factors(path, model)
    except InvalidInputError as ex:
        log.warning("trained factors are not kept: %s", ex)
    return model


def cache_folder() -> Path:
    """``$EVALBUDGET_CACHE``, or ``evalbudget`` in the system's folder for caches."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "evalbudget"


def _key(table: ScoreTable, items: Sequence[str], arguments: tuple[object, ...]) -> str:
    digest = hashlib.sha256(f"{_FORMAT} {table.shape} {arguments}".encode())
    for name in items:
        digest.update(name.encode() + b"\0")
    # every nan counts the same, whatever its bits
    for _, block in table.by_models():
        digest.update(np.where(np.isnan(block), np.nan, block).tobytes())
    return digest.hexdigest()[:32]


def _pack(model: FactorModel) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {
        "items": np.array(model.items, dtype=np.str_),
        "V": model.V,
        "U": model.U,
        "prior_mean": model.prior_mean,
        "prior_precision": model.prior_precision,
    }
    for k, fold in enumerate(model.folds):
        arrays[f"fold{k}_scores"] = fold.scores
        arrays |= {f"fold{k}_{name}": array for name, array in _pack(fold.model).items() if name != "items"}
    return arrays


def _unpack(arrays: Mapping[str, NDArray[Any]]) -> FactorModel:
    items = tuple(str(name) for name in arrays["items"])
    folds = []
    k = 0
    while f"fold{k}_scores" in arrays:
        scores = np.asarray(arrays[f"fold{k}_scores"], dtype=np.float32)
        if ((scores < 0) | (scores > 1)).any():
            raise InvalidInputError(f"fold{k}_scores has scores outside of 0 to 1; train it again")
        folds.append(Fold(_bare(arrays, items, f"fold{k}_"), scores))
        k += 1
    whole = _bare(arrays, items, "")
    return FactorModel(items, whole.V, whole.prior_mean, whole.prior_precision, whole.U, tuple(folds))


def _bare(arrays: Mapping[str, NDArray[Any]], items: tuple[str, ...], prefix: str) -> FactorModel:
    V, mean, precision, U = (
        np.asarray(arrays[prefix + name], dtype=np.float64)
        for name in ("V", "prior_mean", "prior_precision", "U")
    )
    r = mean.size
    if V.shape != (len(items), r) or precision.shape != (r, r) or U.shape[1:] != (r,):
        raise InvalidInputError("the shapes of V, U and the prior do not fit together; train it again")
    return FactorModel(items, V, mean, precision, U)
