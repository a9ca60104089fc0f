"""The task that pages speak of: right or wrong, in a grader's eyes."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelCost, ModelInfo, set_model_info
from inspect_ai.scorer import model_graded_qa

ITEMS = 8
COST = ModelCost(input=900, output=900, input_cache_write=0, input_cache_read=0)  # dollars per million tokens

for name in "bcd":
    set_model_info(f"openai-api/here/{name}", ModelInfo(cost=COST))


@task
def my_task() -> Task:
    samples = [Sample(id=f"q{i}", input=f"Is {i} odd?", target="yes") for i in range(ITEMS)]
    return Task(dataset=samples, scorer=model_graded_qa())
