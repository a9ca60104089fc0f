"""``evalbudget pairwise``: what it prints, its files, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evalbudget.cli.main import cli
from evalbudget_pairwise import Preference, as_text, load_preferences
from pairwise_sections.worlds import World


def ran(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["pairwise", *map(str, arguments)])


def table(path: Path, world: World, n_items: int = 80, seed: int = 1) -> Path:
    found = world.preferences(n_items, seed)
    rows = [
        Preference(found.items[i], found.models[a], found.models[b], float(v))
        for i, a, b, v in zip(found.item, found.first, found.second, found.value, strict=True)
    ]
    path.write_text(as_text(rows, path.suffix))
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".JSONL"])
def test_it_says_what_is_proved(tmp_path: Path, suffix: str) -> None:
    result = ran(table(tmp_path / f"p{suffix}", World((0.8, 0.1, -0.9), 0.5, 0.2)))
    assert result.exit_code == 0, result.output
    assert result.output.startswith("model 0 beats every one of the other 2, with 95% confidence.")
    assert "position bias" in result.output
    assert "beats" in result.output.partition("against")[2]


def test_it_says_that_nothing_is_proved(tmp_path: Path) -> None:
    result = ran(table(tmp_path / "p.csv", World((0.1, 0.0)), 20))
    assert "No winner yet: model " in result.output
    assert "and nothing is proved." in result.output


def test_a_circle_of_models_is_level_as_a_whole(tmp_path: Path) -> None:
    rows = [
        Preference(f"q{n}", *pair, float(pair in ("ab", "bc", "ca")))
        for n in range(30)
        for pair in ("ab", "ba", "bc", "cb", "ca", "ac")
    ]
    path = tmp_path / "p.csv"
    path.write_text(as_text(rows, ".csv"))
    told = " ".join(ran(path).output.split())
    assert "No winner yet: a, b and c are level with a win rate of 0.500." in told


def test_json_has_the_same_numbers(tmp_path: Path) -> None:
    path = table(tmp_path / "p.csv", World((0.8, -0.8), 0.5, 0.2))
    found = json.loads(ran(path, "--json", "-").stdout)
    assert found["winner"] == "model 0"
    assert found["models"][0]["model"] == "model 0"
    assert found["models"][0]["low"] < found["models"][0]["win_rate"] < found["models"][0]["high"]
    assert found["positions"][0]["both_orders"] == 80
    assert found["pairs"][0]["anytime_low"] is None, "the table is read once"
    in_order = json.loads(ran(path, "--in-order", "--json", "-").stdout)["pairs"][0]
    assert in_order["anytime_low"] < in_order["low"] < in_order["high"] < in_order["anytime_high"]
    assert ran(path, "--json", str(tmp_path / "out.json")).exit_code == 0
    assert json.loads((tmp_path / "out.json").read_text()) == found


def test_winners_and_values_are_read_alike(tmp_path: Path) -> None:
    by_value, by_winner = tmp_path / "value.csv", tmp_path / "winner.csv"
    by_value.write_text("item,first,second,value\nq,a,b,1\nq,b,a,0.5\nr,a,b,0\nr,b,a,\n")
    by_winner.write_text("Item, First ,second,winner\nq,a,b,a\nq,b,a,Tie\nr,a,b,b\nr,b,a,\n")
    found = [load_preferences(path) for path in (by_value, by_winner)]
    assert found[0].voted.value.tolist() == found[1].voted.value.tolist() == [1.0, 0.5, 0.0]
    assert found[0].missing == found[1].missing == 1


ORDERED = {"item": "q", "first": "a", "second": "b", "winner": "b"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.json", json.dumps([ORDERED, {**ORDERED, "item": "r", "winner": None}], indent=2)),
        (
            "p.json",
            json.dumps(ORDERED) + "\n" + json.dumps({**ORDERED, "item": "r", "value": ""} | {"winner": ""}),
        ),
        ("p.jsonl", json.dumps([ORDERED, {**ORDERED, "item": "r", "winner": ""}])),
        ("p.tsv", "item\tfirst\tsecond\twinner\nq\ta\tb\tb\nr\ta\tb\t\n"),
        ("p.csv", "item,first,second,winner\nq,a,b,second\nr,a,b,\n"),
    ],
)
def test_arrays_lines_and_tabs_are_read_alike(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = load_preferences(tmp_path / name)
    assert (found.items, found.models, found.ordered, found.missing) == (("q", "r"), ("a", "b"), True, 1)
    assert found.voted.value.tolist() == [0.0]


@pytest.mark.parametrize(
    "text",
    [
        "item,a,b,winner\nq,x,y,x\nr,y,x,x\ns,x,y,tie\n",
        "item,model_a,model_b,winner\nq,x,y,model_a\nr,y,x,model_b\ns,x,y,tie (bothbad)\n",
        "item,model_a,model_b,value\nq,x,y,1\nr,y,x,0\ns,x,y,0.5\n",
        "item,winner,loser,value\nq,x,y,\nr,x,y,1\ns,y,x,0.5\n",
    ],
)
def test_preferences_without_an_order_are_read_and_said_to_be_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    result = ran(path)
    assert result.exit_code == 0, result.output
    told = " ".join(result.output.split())
    assert "no effect of position can be seen" in told
    assert "position bias" not in told
    found = json.loads(ran(path, "--json", "-").stdout)
    assert (found["ordered"], found["positions"], found["winner"]) == (False, [], None)
    assert (found["models"][0]["model"], found["models"][0]["win_rate"]) == ("x", pytest.approx(5 / 6))


def test_columns_that_are_not_used_are_named(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("item,first,second,winner,judge,language,seconds\nq,a,b,a,x,en,3\nr,b,a,a,x,de,4\n")
    assert "Not read: language, seconds." in ran(path).output
    assert json.loads(ran(path, "--json", "-").stdout)["not_read"] == ["language", "seconds"]


def test_missing_verdicts_are_said(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    rows = [f"q{n},{'a,b' if n % 2 else 'b,a'},{'' if n < 3 else 'a'}" for n in range(40)]
    path.write_text("\n".join(["item,first,second,winner", *rows, ""]))
    told = " ".join(ran(path).output.split())
    assert "3 verdicts are missing (3 of a, 3 of b)." in told
    found = json.loads(ran(path, "--json", "-").stdout)
    assert (found["missing"], found["judgements"], found["winner"]) == (3, 37, "a")


def test_many_judges_are_not_all_listed(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    rows = [f"q{n},{'a,b' if n % 2 else 'b,a'},{'a' if n % 4 else 'b'},user{n}" for n in range(40)]
    path.write_text("\n".join(["item,first,second,winner,judge", *rows, ""]))
    result = ran(path)
    assert "29 more judges are in the JSON." in result.output
    assert len(json.loads(ran(path, "--json", "-").stdout)["positions"]) == 41
    assert " ".join(result.output.split()).count("the effect of position is not identified") == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("item,frist,second,winner\nq,a,b,a\n", "no column first. Is it 'frist'? Rename it."),
        ("item,first,second,winer\nq,a,b,a\n", "no column winner and no column value. Is it 'winer'?"),
        ("item,first,second\nq,a,b\n", "no column winner and no column value. Found: item, first, second"),
        ("", "no column item"),
        ("item,first,second,winner\n", "has no preferences"),
        ("item,item,first,second,winner\nq,q,a,b,a\n", "2 columns named item"),
        ("item,first,second,winner\nq,a,a,a\n", "line 2: 'a' stands against itself"),
        ("item,first,second,winner\nq,a,a,b\n", "line 2: 'a' stands against itself"),
        ("item,first,second,winner\nq,alpha,b,alfa\n", "Did you mean 'alpha'?"),
        ("item,first,second,winner\nq,a,b\n", "line 2: 3 fields, the header has 4"),
        ("item,first,second,winner\nq,,b,b\n", "line 2: the first is empty"),
        ("item,winner,loser\nq,,b\n", "line 2: the winner is empty"),
        ("item,a,b\nq,x,y\n", "no column winner and no column value"),
        ("item,first,second,value\nq,a,b,2\n", "line 2: value 2 is not between 0 and 1"),
        ("item,first,second,value\nq,a,b,good\n", "line 2: value 'good' is not a number"),
        ("item,first,second,value\nq,a,b,nan\n", "not between 0 and 1"),
        ("item,first,second,winner\nq,a,b,a\nq,c,d,c\n", "2 groups that were never compared"),
        ("item,first,second,winner\nq,a,b,\n", "no preference with a verdict (1 without)"),
    ],
)
def test_bad_tables_are_refused_with_the_place_and_the_remedy(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    result = ran(path)
    assert result.exit_code == 2
    assert str(path) in result.output
    assert told in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 1"),
        ("[1]", "is no JSON object"),
        ('{"item": "q", "first": "a", "secnd": "b", "value": 1}', "no column second. Is it 'secnd'?"),
        ('{"item": "q", "first": "a", "second": "b", "value": [1]}', "value [1] is not a number"),
    ],
)
def test_bad_json_lines_are_refused(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(line + "\n")
    result = ran(path)
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())


def test_one_order_and_one_item_are_told(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("item,first,second,winner\n" + "".join(f"q{n},a,b,a\n" for n in range(60)))
    told = " ".join(ran(path).output.split())
    assert "No winner yet" in told
    assert "only ever shown in one order" in told
    path.write_text("item,first,second,winner\nq,a,b,a\nq,b,a,a\n")
    assert "One item shows no spread" in " ".join(ran(path).output.split())


def test_a_level_that_is_no_probability_and_a_file_that_is_not_there_are_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "p.csv", World((0.8, -0.8)), 10)
    assert ran(path, "--level", "95").exit_code == 2
    assert "cannot be read" in ran(tmp_path / "nowhere.csv").output


def test_names_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("item,first,second,winner\nq,[bold]a,\x1b[31mb,[bold]a\nr,\x1b[31mb,[bold]a,[bold]a\n")
    result = ran(path)
    assert result.exit_code == 0
    assert "[bold]a" in result.output
    assert "\x1b" not in result.output


def test_help_has_examples() -> None:
    told = ran("--help").output
    assert "evalbudget pairwise preferences.csv" in told
    assert "item,first,second,winner,judge" in told


def test_a_line_of_json_ends_where_the_line_does(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    rows = [Preference("one\u2028item", "a", "b", 1.0), Preference("two", "b", "a", 0.0)]
    path.write_text(as_text(rows, ".jsonl"), encoding="utf-8")
    assert load_preferences(path).items == ("one\u2028item", "two")
