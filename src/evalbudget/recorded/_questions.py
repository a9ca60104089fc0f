"""Items of several sources matched by what was asked, and not by an id that may hold another question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import lgamma, log

ACROSS_TASKS = "if ids name the same questions, give --across-tasks"
"""What a person can do where nothing shows it."""
ONE_BY_ONE = "if ids name the same questions, give each log by itself, with --across-tasks"
"""The same where one folder holds all logs."""

_BY_CHANCE = 0.05
"""Right answers that other questions would share so often show nothing."""


@dataclass(frozen=True, slots=True)
class Matched:
    """Items of several sources under common names.

    Attributes:
        names: of each source, the name of every id.
        notes: what was not as its id says, for people.
    """

    names: tuple[Mapping[str, str], ...]
    notes: tuple[str, ...]


def match_questions(
    sources: Sequence[tuple[str, Mapping[str, str]]], *, trust_ids: bool = False, remedy: str = ""
) -> Matched:
    """Give the same question the same name in every source.

    The first source that has a question names it by its id. Where a later source has another question under
    that id, it goes by the name that its own question has; a question that no other source has goes by its id
    and the source's name, and so is paired with nothing. Where all right answers to other texts under the
    same ids agree, and other questions would hardly have these (:func:`shows_same`), the questions were asked
    in other words, and ids count. Under a new id, a question that stands once goes by the name that it has
    elsewhere.

    Args:
        sources: the name of each, for people, and the digest (``digest_of``; empty: unknown) of each id.
        trust_ids: ids count, whatever was asked under them.
        remedy: what to do where right answers agree, and do not show that the questions are the same.
    """
    digest: dict[str, str] = {}
    holders: dict[str, list[str]] = {}
    names: list[Mapping[str, str]] = []
    notes: list[str] = []
    for label, own in _by_what_was_sent(sources):
        changed = [id_ for id_, told in own.items() if _text(told) not in ("", _text(digest.get(id_, told)))]
        changed = [id_ for id_ in changed if digest.get(id_)]
        found = {id_: id_ for id_ in own}
        shared = sum(id_ in digest for id_ in own)
        if changed and trust_ids:
            verb = "holds" if len(changed) == 1 else "hold"
            notes.append(
                f"{_of(len(changed), shared)} of {label} {verb} another text; paired by id, as asked."
            )
        elif changed and _reworded(changed, own, digest, holders):
            verb = "asks" if len(changed) == 1 else "ask"
            notes.append(
                f"{_of(len(changed), shared)} of {label} {verb} for the same answer in other words; paired."
            )
        elif changed:
            moved = _moved(label, own, digest, holders)
            found |= moved
            alone = sum(name not in digest for name in moved.values())
            questions = "1 question is" if alone == 1 else f"{alone:,} questions are"
            rest = f"; {questions} asked nowhere else" if alone else ""
            if alone == len(changed) and _agree(changed, own, digest):
                rest += (
                    f" (right answers agree, as those of other questions may well{remedy and f'; {remedy}'})"
                )
            verb = "holds" if len(changed) == 1 else "hold"
            notes.append(
                f"{_of(len(changed), shared)} of {label} {verb} another question than elsewhere: paired by "
                f"question{rest}."
            )
        elif not trust_ids and (renamed := _renamed(own, digest, holders)):
            found |= renamed
            one = len(renamed) == 1
            what, have = ("question", "has another id") if one else ("questions", "have other ids")
            notes.append(f"{len(renamed):,} {what} of {label} {have} elsewhere: paired by question.")
        if n := sum(_another_answer(own[id_], digest.get(name, "")) for id_, name in found.items()):
            verb = "has" if n == 1 else "have"
            notes.append(f"{_of(n, len(own))} of {label} {verb} another right answer than elsewhere; paired.")
        for id_, name in found.items():
            if name not in digest or not digest[name]:
                digest[name] = own[id_]
                if own[id_]:
                    holders.setdefault(_text(own[id_]), []).append(name)
        names.append(found)
    return Matched(tuple(names), tuple(notes))


def asked_twice(digests: Mapping[str, str], together: Mapping[str, str] | None = None) -> list[str]:
    """A note on items that ask what others ask, with the same right answer; none where there are none.

    Args:
        digests: of what was asked, by item; empty: unknown.
        together: labels of items that count as sampled together, which their copies may have, too.
    """
    first: dict[str, str] = {}
    copies = []
    for item, digest in digests.items():
        other = first.setdefault(_less_sent(digest), item) if digest else item
        known = together is not None and item in together and together[item] == together.get(other)
        if other != item and not known:
            copies.append((item, other))
    if not copies:
        return []
    item, other = copies[0]
    verb = "asks" if len(copies) == 1 else "ask"
    return [
        f"{len(copies):,} of {len(digests):,} items {verb} what another one asks, with the same right answer "
        f"({item} what {other} does, for example), and count as independent, which makes intervals too "
        "narrow: drop the copies, or give them a field in common and name it: evalbudget compare or gate "
        "--cluster FIELD."
    ]


def _less_sent(digest: str) -> str:
    """A digest without what was sent, which examples before a question are part of."""
    return "-".join(digest.split("-")[:2])


def _by_what_was_sent(
    sources: Sequence[tuple[str, Mapping[str, str]]],
) -> Iterator[tuple[str, dict[str, str]]]:
    """The same, where what is sent under an id as in an earlier source is the question that it is there.

    Its right answer, or what else is not sent, may have been edited since.
    """
    first: dict[tuple[str, str], str] = {}
    for label, own in sources:
        found = {}
        for id_, told in own.items():
            sent = "".join(told.split("-")[2:])
            text = first.setdefault((id_, sent), _text(told)) if sent else _text(told)
            found[id_] = f"{text}-{_target(told)}" if told else told
        yield label, found


def _agree(ids: Sequence[str], own: Mapping[str, str], digest: Mapping[str, str]) -> bool:
    return all(_target(own[id_]) == _target(digest[id_]) for id_ in ids)


def _another_answer(digest: str, known: str) -> bool:
    """Whether two digests are of the same text, and of different right answers."""
    return _text(digest) == _text(known) != "" and _target(digest) != _target(known)


def _text(digest: str) -> str:
    return digest.partition("-")[0]


def _target(digest: str) -> str:
    return "".join(digest.split("-")[1:2])


def _of(changed: int, shared: int) -> str:
    return f"{changed:,} of {shared:,} ids"


def _reworded(
    changed: Sequence[str],
    own: Mapping[str, str],
    digest: Mapping[str, str],
    holders: Mapping[str, Sequence[str]],
) -> bool:
    """Whether no question is known under another id, and the right answers show that they are the same."""
    return (
        not any(_text(own[id_]) in holders for id_ in changed)
        and _agree(changed, own, digest)
        and shows_same([own[id_] for id_ in changed], own.values())
    )


def shows_same(agreeing: Iterable[str], asked: Iterable[str]) -> bool:
    """Whether other questions would hardly have the same right answers, each under the same id.

    They would as often as answers drawn from all of a source's are, in this order, those that agree.

    Args:
        agreeing: digests of the questions of a source whose right answers agree with those under their ids.
        asked: digests of all its questions.
    """
    drawn, every = (Counter(map(_target, digests)) for digests in (agreeing, asked))
    log_chance = sum(_log_ways(every[target], n) for target, n in drawn.items())
    return log_chance - _log_ways(every.total(), drawn.total()) <= log(_BY_CHANCE)


def _log_ways(n: int, k: int) -> float:
    """Logarithm of the number of ways to draw k of n one after the other."""
    return lgamma(n + 1) - lgamma(n - k + 1)


def _renamed(
    own: Mapping[str, str], digest: Mapping[str, str], holders: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """The names of those of a source's new ids whose question stands once here and once elsewhere."""
    times = Counter(own.values())
    found: dict[str, str] = {}
    for id_, told in own.items():
        names = holders.get(_text(told), ()) if told and id_ not in digest and times[told] == 1 else ()
        if len(names) == 1 and names[0] not in own and digest[names[0]] == told:
            found[id_] = names[0]
    return found


def _moved(
    label: str, own: Mapping[str, str], digest: Mapping[str, str], holders: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """The names of those of a source's ids whose questions have others, or none."""
    stays = {id_ for id_, told in own.items() if not told or _text(digest.get(id_, "")) == _text(told)}
    taken = set(stays)
    found: dict[str, str] = {}
    for id_, told in own.items():
        if id_ in stays or not told or (id_ not in digest and _text(told) not in holders):
            continue
        free = (name for name in holders.get(_text(told), ()) if name not in taken)
        name = next(free, f"{id_} ({label})")
        taken.add(name)
        found[id_] = name
    return found
