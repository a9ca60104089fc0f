"""However a race is cut off, its sentence and its statuses are true: checked claim by claim."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from tests.claims import binomial_claim, is_full, pinned, replications, variant
from tests.races.worlds import MODELS, new_race, play, played, table, worlds

from evalbudget.races._lanes import KnownCell
from evalbudget.races._leaderboard import Leaderboard, leaderboard_of
from evalbudget.races._purchase import RacePurchase
from evalbudget.races._summary import closing_lines
from evalbudget.races._verdict import Finding, Status
from evalbudget.races.samplers import ProvingSampler
from evalbudget.statistics._best_proof import BestProof, pairwise_evidence
from evalbudget.statistics._bounds import FloatArray

SAMPLERS = {
    "race": {"batch": 4, "first": 2},
    "paired-eprocess": {"batch": 2},
    "uniform": {},
    "lucb": {"batch": 2},
    "ucb-e": {"batch": 2},
    "pulse": {"batch": 2, "tau": 2},
    "visit": {"batch": 2},
    "successive-rejects": {},
    "sequential-halving": {},
}
DECIDED = (Status.BEST, Status.TIE)
# the worlds in which a sampler is watched; in the others too where claims are tested in full
WATCHED = {
    "race": set(worlds(0)),
    "paired-eprocess": {"failures", "a duplicate", "all equal"},
    "uniform": set(worlds(0)),
    "ucb-e": {"a broken model"},
}
FEW = {"failures", "a tie"}


def _check(race: RacePurchase, scores: FloatArray) -> Leaderboard:
    """Every claim of the leaderboard, against what was read and against the whole table."""
    board = leaderboard_of(race)
    m = scores.shape[0]
    assert Leaderboard.from_json(json.loads(json.dumps(board.as_json))) == board
    _counts_add_up(board, race, scores)
    for standing in board.standings:
        _numbers_are_possible(standing, scores[MODELS.index(standing.name)])
    named = {status: set(board.named(status)) for status in Status}
    row = {standing.name: MODELS.index(standing.name) for standing in board.standings}
    # one outcome, and the statuses that belong to it
    assert bool(named[Status.BEST]) == (board.outcome == Finding.BEST)
    assert bool(named[Status.TIE]) == (board.outcome == Finding.TIE)
    assert len(named[Status.BEST]) <= 1 != len(named[Status.TIE])
    if named[Status.BEST] or named[Status.TIE]:
        assert not named[Status.LEADS] | named[Status.POSSIBLE]
        assert board.unread == 0
    else:
        assert len(named[Status.LEADS]) <= 1
        assert board.proof == ""
    _sentence_says_so(board)
    shared = _shared_order(race)
    proved = set()
    if isinstance(race.sampler, ProvingSampler):
        proved = _dropped(race)
    elif shared is not None:
        proved = _beaten(race, shared)
    for name in named[Status.TIE]:  # all of it is known, and equal
        assert board.of(name).unread == 0
        for other in named[Status.TIE]:
            assert _lead(scores, row[name], row[other]) == pytest.approx(0.0, abs=1e-9)
    best = [row[name] for name in named[Status.BEST] | named[Status.TIE]]
    for name in named[Status.BEHIND]:
        certain = _is_certainly_beaten(race, row[name], named[Status.LOST])
        by_intervals = shared is None and _interval_below(board, name)
        assert certain or row[name] in proved or by_intervals
        if certain:
            assert max(_lead(scores, k, row[name]) for k in range(m)) > 0
    if best and board.proof.startswith("exact"):
        compared = [row[s.name] for s in board.standings if s.status is not Status.LOST]
        for other in compared:
            lead = _lead(scores, best[0], other)
            assert lead > 0 or other in best
            assert lead == pytest.approx(0.0, abs=1e-9) or other not in best or other == best[0]
    return board


def _counts_add_up(board: Leaderboard, race: RacePurchase, scores: FloatArray) -> None:
    assert board.spent == sum(s.evaluations for s in board.standings) <= board.budget
    assert board.grid == scores.size
    possible = board.named(Status.LEADS, Status.POSSIBLE)
    undecided = board.outcome in (Finding.UNDECIDED, Finding.NOTHING)
    assert board.unread == (sum(board.of(name).unread for name in possible) if undecided else 0)
    for standing in board.standings:
        arm = MODELS.index(standing.name)
        read = int((~np.isnan(race.sampler.scores_of(arm))).sum())
        assert standing.readings == read
        assert standing.unread == scores.shape[1] - read - _closed(race, arm)
        assert standing.readings + standing.failed == standing.evaluations


def _numbers_are_possible(standing: object, scores: FloatArray) -> None:
    s = standing
    assert 0.0 <= s.all_lower <= s.all_upper <= 1.0  # type: ignore[attr-defined]
    if s.all_lower == s.all_upper:  # type: ignore[attr-defined]
        assert s.unread == 0  # type: ignore[attr-defined]
        assert s.estimate == pytest.approx(np.nanmean(scores))  # type: ignore[attr-defined]
    if s.estimate is not None:  # type: ignore[attr-defined]
        assert -1e-9 <= s.estimate <= 1.0 + 1e-9  # type: ignore[attr-defined]
    assert (s.lower is None) == (s.upper is None) == (s.no_interval is not None)  # type: ignore[attr-defined]
    if s.lower is not None:  # type: ignore[attr-defined]
        assert s.readings >= 3  # type: ignore[attr-defined]
        assert 0.0 <= s.lower < s.upper <= 1.0  # type: ignore[attr-defined]
        assert s.lower - 1e-9 <= s.estimate <= s.upper + 1e-9  # type: ignore[attr-defined]
    assert s.stderr is None or s.stderr > 0.0  # type: ignore[attr-defined]


def _sentence_says_so(board: Leaderboard) -> None:
    text = board.sentence
    mentioned = set(re.findall(r"lab/model-[a-h]", text))
    first = board.named(Status.BEST, Status.TIE, Status.LEADS, Status.POSSIBLE)
    if board.outcome == Finding.BEST:
        assert mentioned == set(board.named(Status.BEST))
        assert text.startswith(f"{board.leader.name} is best")
        assert ("confidence" in text) == (not board.proof.startswith("exact"))
    elif board.outcome == Finding.TIE:
        assert text.startswith("A tie: ")
        assert mentioned == set(board.named(Status.TIE))
    elif board.outcome == Finding.NOTHING:
        assert not mentioned
    else:
        assert "is best" not in text
        assert "confidence" not in text
        assert mentioned == set(first)
        assert text.startswith(("Undecided: ", "Nothing to compare: "))
    shown = board.table(width=80)
    assert shown.startswith(text[:20])
    assert max(map(len, shown.splitlines())) <= 80


def _lead(scores: FloatArray, a: int, b: int) -> float:
    """How much a is ahead of b at least, whatever the scores that are missing."""
    return float((np.nan_to_num(scores[a], nan=0.0) - np.nan_to_num(scores[b], nan=1.0)).sum())


def _closed(race: RacePurchase, arm: int) -> int:
    return sum(cell.model == arm for cell in race.sampler.closed)


def _drawn(race: RacePurchase) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest possible score of each cell that is drawn in order."""
    m, n = race.design.n_models, race.design.n_items
    low, high = np.zeros((m, n)), np.ones((m, n))
    for arm in range(m):
        draws = race.sampler.draws(arm)
        low[arm, draws.item] = np.nan_to_num(draws.value, nan=0.0)
        high[arm, draws.item] = np.nan_to_num(draws.value, nan=1.0)
        low[arm, draws.known_item] = high[arm, draws.known_item] = draws.known
    return low, high


def _is_certainly_beaten(race: RacePurchase, arm: int, lost: set[str]) -> bool:
    low, high = _drawn(race)
    for other in set(range(low.shape[0])) - {arm}:
        if MODELS[other] in lost:
            continue
        if (low[other] - high[arm]).sum() > 1e-9:
            return True
    return False


def _shared_order(race: RacePurchase) -> FloatArray | None:
    """Items in the order that all models read them, if they share one."""
    draws = [race.sampler.draws(arm).item for arm in range(race.design.n_models)]
    longest = max(draws, key=len)
    return longest if all((d == longest[: d.size]).all() for d in draws) else None


def _beaten(race: RacePurchase, order: FloatArray) -> set[int]:
    """By the kernel, straight from the scores."""
    m = race.design.n_models
    draws = [race.sampler.draws(arm) for arm in range(m)]
    table = np.full((m, order.size), np.nan)
    for arm, d in enumerate(draws):
        table[arm, : d.value.size] = d.value
    lengths = np.array([d.value.size for d in draws], dtype=np.int64)
    found = pairwise_evidence(table, lengths, draws[0].pool)
    return set(np.flatnonzero(found >= max(m - 1, 2) / 0.05).tolist())


def _dropped(race: RacePurchase) -> set[int]:
    """By a proof that is fed anew, item by item, as long as all contenders have read the item."""
    m, n = race.design.n_models, race.design.n_items
    order = race.sampler.order(0)
    table = np.stack([race.sampler.scores_of(arm) for arm in range(m)])
    closed = {(cell.model, cell.item) for cell in race.sampler.closed}
    proof = BestProof(m, n, delta=0.05, among=set(range(m)) - race.sampler.lost)
    for item in order.tolist():
        if proof.decided or any(
            np.isnan(table[k, item]) and (k, item) not in closed for k in proof.contenders
        ):
            break
        proof.update(table[:, item])
    return set(np.flatnonzero(proof.dropped_at >= 0).tolist())


def _interval_below(board: Leaderboard, name: str) -> bool:
    return any(board.of(name).all_upper < other.all_lower for other in board.standings)


@pytest.mark.parametrize(
    ("sampler", "world"),
    [
        (sampler, world) if world in WATCHED.get(sampler, FEW) else variant(sampler, world)
        for sampler in SAMPLERS
        for world in worlds(0)
    ],
)
def test_every_truncation_of_a_budget_is_described_truly(sampler: str, world: str) -> None:
    scores = worlds(3)[world]
    race = new_race(scores, 4 * scores.size, sampler, 3, **SAMPLERS[sampler])
    board = _check(race, scores)
    assert board.outcome == Finding.NOTHING
    # it takes its time; those that look after each answer are looked at more often than those of long rounds
    every = 1 if is_full() else 4 if sampler in ("race", "paired-eprocess") else 12
    for count, _ in enumerate(play(race, scores)):
        if count % every == 0:
            board = _check(race, scores)
    board = _check(race, scores)
    if sampler == "uniform" and world in ("plain", "graded", "a duplicate", "a tie", "all equal"):
        means = scores.mean(axis=1)
        top = {MODELS[k] for k in np.flatnonzero(means > means.max() - 1e-9)}
        assert set(board.named(*DECIDED)) == top


@pytest.mark.parametrize("sampler", ["race", "paired-eprocess", "uniform", "lucb"])
def test_every_budget_ends_with_a_true_sentence(sampler: str) -> None:
    """A budget that ends in the middle of a round plans otherwise than one that is cut off there."""
    scores = worlds(5, items=7)["a duplicate"]
    first = new_race(scores, 10**6, sampler, 1, **SAMPLERS[sampler]).sampler.minimum_readings
    for budget in range(first, scores.size + 1):
        race = new_race(scores, budget, sampler, 1, **SAMPLERS[sampler])
        board = _check(played(race, scores), scores)
        assert board.spent <= budget


@pytest.mark.parametrize("sampler", ["race", "ucb-e"])
def test_every_truncation_of_a_journal_gives_the_sentence_of_then(sampler: str) -> None:
    scores = worlds(4)["failures"]
    whole = new_race(scores, 60, sampler, 2, **SAMPLERS[sampler])
    answered, sentences = [], []
    for asked in play(whole, scores):
        answered.append(asked)
        sentences.append(_check(whole, scores).sentence)
    for cut in range(0, len(answered), 5):
        race = new_race(scores, 60, sampler, 2, **SAMPLERS[sampler])
        known: dict[int, list[KnownCell]] = {}
        for asked in answered[: cut + 1]:
            value = float(scores[asked.arm, int(asked.key[0][1:])])
            known.setdefault(asked.arm, []).append(
                KnownCell(asked.key, None if math.isnan(value) else value, 1, error="Refused")
            )
        race.replay(known)
        race.wanted()
        assert _check(race, scores).sentence == sentences[cut]


def test_two_models_short_of_the_end_are_no_tie() -> None:
    """.475 and .450 with 40 of 60 items each: nothing is equal, and nothing is decided."""
    a, b = np.zeros(60), np.zeros(60)
    a[:30], b[5:33] = 1.0, 1.0
    scores = np.vstack([a, b])
    board = _check(played(new_race(scores, 80, "uniform", 0), scores), scores)
    assert board.spent == 80
    assert board.outcome == Finding.UNDECIDED
    assert board.sentence == "Undecided: lab/model-a leads; lab/model-b cannot be ruled out yet."
    assert "40 more evaluations decide it at the latest" in board.table(width=200)


@pytest.mark.parametrize("sampler", ["race", "uniform"])
def test_a_model_that_leaves_takes_no_claim_with_it(sampler: str) -> None:
    scores = worlds(6)["plain"]
    for cut in range(0, scores.size, 4):
        race = new_race(scores, scores.size, sampler, 0, **SAMPLERS[sampler])
        for count, _ in enumerate(play(race, scores)):
            if count == cut:
                race.leave(0, "its task ended early")
            if count % 5 == 0:
                _check(race, scores)
        board = _check(race, scores)
        if race.lanes[0].left is not None and board.of(MODELS[0]).dropped_at is not None:
            assert MODELS[0] not in board.sentence or board.of(MODELS[0]).status is not Status.LOST
    # all but one gone: nothing is compared
    race = new_race(scores, scores.size, sampler, 0, **SAMPLERS[sampler])
    for _ in zip(range(8), play(race, scores), strict=False):
        pass
    race.leave(0, "its task ended early")
    race.leave(2, "its task ended early")
    board = _check(race, scores)
    assert board.sentence == "Nothing to compare: only lab/model-b is left, the others were lost."
    race.leave(1, "its task ended early")
    assert _check(race, scores).sentence == "Every model was lost, so none is best."


@pytest.mark.claim
@pytest.mark.parametrize(("sampler", "delta", "expected"), [("race", 0.2, 1), ("uniform", 0.05, 1)])
def test_of_tied_models_none_is_called_the_best(sampler: str, delta: float, expected: int) -> None:
    """Looking after every 24 cells of two models with the same mean and a worse one."""
    R, wrong = replications(5, 1000), 0
    for seed in range(8, 8 + R):
        rng = np.random.default_rng([seed, 5])
        first = (rng.random(40) < 0.7).astype(float)
        scores = np.vstack([first, rng.permutation(first), rng.random(40) < 0.2])
        options = {"batch": 4, "delta": delta} if sampler == "race" else {}
        race = new_race(scores, scores.size, sampler, seed, **options)
        sentences = [
            leaderboard_of(race).sentence for count, _ in enumerate(play(race, scores)) if count % 24 == 23
        ]
        wrong += any("is best" in sentence for sentence in sentences)
    binomial_claim(wrong, R, at_most=delta)
    pinned(wrong, expected)


@pytest.mark.parametrize("sampler", ["race", "paired-eprocess"])
def test_whom_the_proof_merely_lost_sight_of_may_still_be_the_best(sampler: str) -> None:
    """An arm of an earlier run, a third of its items read, does not run now: nothing was proved of it."""
    scores = np.vstack([table([0.75, 0.7], 60, 1), table([0.1], 60, 2)])
    race = new_race(scores, scores.size, sampler, 3)
    for _ in play(race, scores):
        if race.lanes[0].tally.readings >= 20:
            race.lanes[0].absent = True
    assert 0 in race.sampler.lost
    assert 0 not in race.sampler.proved_worse
    board = leaderboard_of(race)
    assert board.outcome == Finding.UNDECIDED
    assert board.of(MODELS[0]).status in (Status.LEADS, Status.POSSIBLE)
    # one rule that can err: whom the proof did not drop is behind for certain, or not at all
    for standing in board.standings:
        if standing.status is Status.BEHIND:
            row = MODELS.index(standing.name)
            assert row in race.sampler.proved_worse or _is_certainly_beaten(race, row, set())


@pytest.mark.parametrize("sampler", ["race", "paired-eprocess"])
@pytest.mark.parametrize("seed", [1, 3, 4])
def test_what_only_a_lost_model_had_proved_is_proved_again(sampler: str, seed: int) -> None:
    """The second model is ruled out by the first one's answers, the third, which is worse, is not yet."""
    rng = np.random.default_rng(seed)
    scores = np.vstack([np.ones(160), np.full(160, 0.9), rng.permutation(np.arange(160) < 128)]).astype(float)
    options = {"until_proved": True} if sampler == "race" else {}
    race = new_race(scores, scores.size, sampler, seed, **options)
    was_out = False
    for _ in play(race, scores):
        if race.lanes[0].left is None and race.sampler.proved_worse == {1}:
            was_out = True
            race.leave(0, "its task ended early")
            assert not race.sampler.proved_worse
            assert 1 not in race.sampler.eliminated
    assert was_out
    board = leaderboard_of(race)
    assert board.outcome == Finding.BEST
    assert board.leader.name == MODELS[1]
    assert board.sentence.startswith(f"{MODELS[1]} is best of those that answered")
    assert board.of(MODELS[1]).dropped_at is None
    assert "; -" not in str(dict(closing_lines(board))["Proof"])


def test_a_model_that_was_dropped_and_is_gone_does_not_come_back() -> None:
    scores = np.vstack([table([0.95], 60, 1), table([0.1], 60, 2), table([0.8], 60, 3), table([0.75], 60, 4)])
    race = new_race(scores, scores.size, "paired-eprocess", 3)
    for _ in play(race, scores):
        if race.sampler.proved_worse == {1} and race.lanes[0].left is None:
            race.leave(1, "its task ended early")
            race.leave(0, "its task ended early")
    assert race.sampler.lost == {0, 1}
    board = leaderboard_of(race)
    assert board.outcome in (Finding.BEST, Finding.TIE)
    assert {board.of(MODELS[k]).status for k in (0, 1)} == {Status.LOST}
