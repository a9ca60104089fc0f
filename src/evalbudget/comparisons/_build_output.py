"""The verdict where builds look for it: a comment for a pull request, and JUnit's XML."""

from __future__ import annotations

from xml.etree import ElementTree

from evalbudget.comparisons._evidence import Verdict
from evalbudget.comparisons._gate import Gate

_SIGN = {Verdict.NOT_WORSE: "✅", Verdict.WORSE: "❌", None: "❔"}


def as_markdown(gate: Gate) -> str:
    """A comment for a pull request."""
    low, high = gate.interval
    rows = [
        ("difference", f"{gate.difference:+.4g}"),
        ("interval", f"{low:+.4g} to {high:+.4g}"),
        ("margin", f"{gate.margin:g}"),
        ("items compared", f"{gate.items:,} of {gate.n_items:,}"),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    first, *rest = (_escaped(line) for line in gate.lines())
    return (
        f"### {_SIGN[gate.verdict]} {first}\n\n| {_escaped(gate.score)} | |\n|---|---|\n{table}\n\n"
        + "\n".join(rest)
        + "\n"
    )


def _escaped(text: str) -> str:
    """Names come from anywhere."""
    return "".join(f"\\{char}" if char in "\\`*_<>[]|#" else char for char in text)


def as_junit(gate: Gate) -> str:
    """One test case: failed if the candidate is worse, skipped if that is undecided."""
    undecided, worse = gate.verdict is None, gate.verdict is Verdict.WORSE
    suite = ElementTree.Element(
        "testsuite", name="evalbudget gate", tests="1", failures=str(int(worse)), skipped=str(int(undecided))
    )
    case = ElementTree.SubElement(
        suite, "testcase", classname=gate.score, name=f"{gate.candidate} is not worse than {gate.baseline}"
    )
    told = "\n".join(gate.lines())
    if worse:
        ElementTree.SubElement(case, "failure", message=gate.sentence).text = told
    elif undecided:
        ElementTree.SubElement(case, "skipped", message=gate.sentence)
    ElementTree.SubElement(case, "system-out").text = told
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
