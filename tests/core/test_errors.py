"""Errors survive the way between processes."""

from __future__ import annotations

import copy
import pickle

from evalbudget.errors import UnknownNameError


def test_an_unknown_name_is_pickled_with_what_it_knows() -> None:
    error = UnknownNameError("sampler", "unifrom", ["uniform", "robin"])
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is UnknownNameError
        assert str(again) == str(error)
        assert (again.kind, again.name, again.known) == ("sampler", "unifrom", ("robin", "uniform"))
