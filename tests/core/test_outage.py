"""What an HTTP status says of the bill."""

import pytest

from evalbudget.outage import is_refusal


@pytest.mark.parametrize("status", [400, 401, 404, 409, 429, 500, 503, 529])
def test_what_a_server_refuses_is_not_billed(status: int) -> None:
    assert is_refusal(status)


@pytest.mark.parametrize("status", [200, 204, 301, 399, 408, 504, 524])
def test_what_was_served_or_passed_on_may_be(status: int) -> None:
    assert not is_refusal(status)
