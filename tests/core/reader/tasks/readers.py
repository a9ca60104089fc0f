"""Documents and scores of the tasks beside this file, which has none of them in a data set elsewhere."""

import re
from typing import Any

from datasets import Dataset


def documents(**_: Any) -> dict[str, Dataset]:
    return {"test": Dataset.from_list([{"topic": f"a river ({i})", "answer": str(i)} for i in range(8)])}


def right_and_near(doc: dict[str, str], results: list[str]) -> dict[str, float]:
    found = int((re.findall(r"\d+", results[0]) or ["0"])[-1])
    return {"exact_match": float(found > 4), "f1": found / 9}
