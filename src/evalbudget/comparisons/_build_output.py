"""The verdict where builds look for it: a comment for a pull request, and JUnit's XML."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from evalbudget.comparisons._evidence import Verdict
from evalbudget.comparisons._gate import Gate
from evalbudget.shown import shown

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
        f"### {_SIGN[gate.verdict]} {first}\n\n| {_escaped(shown(gate.score))} | |\n|---|---|\n{table}\n\n"
        + "\n".join(rest)
        + "\n"
    )


_MARKUP = re.compile(r"[\\`*_<>\[\]|#~$]")
_LIVE = re.compile(r"(?:[@#!%~$]|&amp;)(?=\\?\w)|:(?=//)|\bwww(?=\.)|\bGH-(?=\d)", re.IGNORECASE)
"""What sites make links of, or messages to people: an account, an issue, an address."""
_BREAK = "&#8203;"  # has no width, and stands in the file for everybody to see


def _escaped(text: str) -> str:
    """Names come from anywhere: no markup, no link, nobody is called."""
    plain = _MARKUP.sub(r"\\\g<0>", text.replace("&", "&amp;"))
    return _LIVE.sub(rf"\g<0>{_BREAK}", plain)


def as_junit(gate: Gate) -> str:
    """One test case: failed if the candidate is worse, skipped if that is undecided."""
    undecided, worse = gate.verdict is None, gate.verdict is Verdict.WORSE
    suite = ElementTree.Element(
        "testsuite", name="evalbudget gate", tests="1", failures=str(int(worse)), skipped=str(int(undecided))
    )
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=shown(gate.score),
        name=shown(f"{gate.candidate} is not worse than {gate.baseline}"),
    )
    told = str(gate)
    if worse:
        ElementTree.SubElement(case, "failure", message=gate.lines()[0]).text = told
    elif undecided:
        ElementTree.SubElement(case, "skipped", message=gate.lines()[0])
    ElementTree.SubElement(case, "system-out").text = told
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
