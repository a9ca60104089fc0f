"""The price file: what it may hold, and refusals that name file, model and remedy."""

from pathlib import Path

import pytest

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.prices import Price, read_prices


def written(folder: Path, text: str) -> Path:
    path = folder / "prices.yaml"
    path.write_text(text)
    return path


def test_a_file_of_prices(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "openai/a: {input: 0.15, output: 0.6, cached: 0.075, max_output: 4096}\n"
        "google/*:\n  input: 1\n  output: 9\n  tiers:\n    - {above: 200000, input: 2.5}\n",
    )

    assert read_prices(path) == {
        "openai/a": Price(input=0.15, output=0.6, cached=0.075, max_output=4096),
        "google/*": Price(input=1, output=9, tiers=(Price(input=2.5, output=9, above=200_000),)),
    }


def test_json_is_read_too(tmp_path: Path) -> None:
    assert read_prices(written(tmp_path, '{"a": {"input": 1.5, "output": 0}}')) == {"a": Price(input=1.5)}


def test_small_prices_are_numbers_however_they_are_written(tmp_path: Path) -> None:
    told = "a: {call: 1e-05, tiers: [{above: 10, input: 2E-7, output: 1e3}]}\n"
    (price,) = read_prices(written(tmp_path, told)).values()
    assert (price.call, price.tiers[0].input, price.tiers[0].output) == (1e-05, 2e-7, 1000.0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds no prices; write a line for each model, for example"),
        ("- a\n", "holds no prices"),
        ("a: 3\n", r"prices.yaml, a: 3 is no price; write for example"),
        ("a: {}\n", "a: {} is no price"),
        ("a: {input: cheap}\n", "prices.yaml, a: input is 'cheap'; write a number"),
        ("a: {input: -1}\n", "prices.yaml, a: input is -1; write a number of zero or more"),
        ("a: {input: .nan}\n", "input is nan"),
        ("a: {input: 1, currency: EUR}\n", "prices are in US dollars; convert them, and drop 'currency'"),
        ("a: {input: 1, tiers: 5}\n", "tiers is 5; write a list"),
        ("a: {input: 1, tiers: [{above: 9, input: -2}]}\n", "prices.yaml, a, tier: input is -2"),
        ("a: {max_output: 100}\n", "it does not say what input and output cost; add input and output, 0 for"),
        ("a: {input: 1, output: null}\n", "prices.yaml, a: output is None; write a number"),
        (
            f"a: {{input: 1{'0' * 399}, output: 1}}\n",
            "prices.yaml, a: input is 10000000000000000000; write a",
        ),
        ("a: {input: 1, output: 1, tiers: [{above: null}]}\n", "a, tier: above is None; write a number"),
        ("a: {input: 1}\n", "it does not say what output cost; add output"),
        ("a: {call: 1, output: 1}\n", "it does not say what input cost"),
        ("a: {input: 1, output: 1, above: 9}\n", "'above' is for tiers"),
        ("a: {input: 1, output: 1, tiers: [{above: 9, call: 1}]}\n", "'call' holds for calls of any length"),
        ("a: [\n", "prices.yaml cannot be read as YAML, line 2"),
        ("a: &x [*x]\n", r"\*x stands for something else; write that out"),
    ],
)
def test_what_is_no_price_file_is_refused_with_the_remedy(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        read_prices(written(tmp_path, text))


def test_calls_and_time_may_be_all_that_costs(tmp_path: Path) -> None:
    path = written(tmp_path, "a: {call: 0.004, max_output: 9}\nb: {second: 0.1}\n")

    assert read_prices(path) == {"a": Price(call=0.004, max_output=9), "b": Price(second=0.1)}


def test_for_a_budget_in_tokens_the_longest_reply_is_enough(tmp_path: Path) -> None:
    path = written(tmp_path, "a: {max_output: 9}\n")

    assert read_prices(path, in_tokens=True) == {"a": Price(max_output=9)}


def test_a_price_of_an_unknown_kind_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"'ouput'. Did you mean 'output'"):
        read_prices(written(tmp_path, "a: {ouput: 3}\n"))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"nowhere.yaml cannot be read: No such file"):
        read_prices(tmp_path / "nowhere.yaml")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_bytes(b"\xff\xfe\x00a")

    with pytest.raises(InvalidInputError, match="is not UTF-8 text"):
        read_prices(path)
