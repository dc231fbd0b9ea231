"""What a pooler's clients waited for, out of samples."""

from dataclasses import replace

import pytest

from sinkbench.analysis.pooler import POOL_QUERIES, POOL_TRANSACTIONS, POOL_WAIT_SECONDS, POOL_WAITING, POOL_WORST_WAIT
from sinkbench.analysis.pooler import waits_in as waits
from sinkbench.analysis.samples import OTHER_POOL_CLIENTS, Sample
from sinkbench.results import Pool
from tests.support.present import present


def sample(clients: int | None = 15, **signs: float) -> Sample:
    return replace(Sample(0.0, 0, 0, 12, 15, 10, 3, 0), pool_clients=clients, signs=signs)


def counted(seconds: float, queries: float, transactions: float) -> dict[str, float]:
    return {POOL_WAIT_SECONDS: seconds, POOL_QUERIES: queries, POOL_TRANSACTIONS: transactions}


def test_waits_are_the_most_that_was_seen_and_a_mean_of_what_was_counted() -> None:
    samples = [
        sample(**counted(2.0, 1_000, 500)),
        sample(**{POOL_WAITING: 5, POOL_WORST_WAIT: 0.02}),
        sample(**{POOL_WAITING: 2, POOL_WORST_WAIT: 0.25}),
        sample(**counted(3.0, 3_000, 1_000)),
    ]
    assert waits(samples) == Pool(
        most_waiting=5, longest_wait_ms=250.0, wait_ms_per_query=0.5, wait_ms_per_transaction=2.0
    )


def test_what_goes_through_no_pooler_has_no_waits() -> None:
    assert (waits([sample(None), sample(0, pool_waiting=3)]), waits([])) == (None, None)


def test_what_was_not_read_twice_has_begun_anew_or_had_no_query_is_not_known() -> None:
    once = waits([sample(**counted(2.0, 10, 10)), sample()])
    again = waits([sample(**counted(2.0, 10, 10)), sample(**counted(1.0, 20, 20))])
    none = waits([sample(**counted(1.0, 5, 5)), sample(**counted(1.0, 5, 5))])
    assert once == again == none == Pool()


def test_whose_the_waits_are_is_not_known_where_others_have_clients() -> None:
    samples = [sample(**counted(0.0, 0, 0)), sample(**{OTHER_POOL_CLIENTS: 2, POOL_WAITING: 9}, **counted(9.0, 9, 9))]
    assert waits(samples) == Pool()
    assert waits([replace(each, pool_clients=2) for each in samples[1:]]) is None


@pytest.mark.parametrize("sign", [POOL_WAITING, POOL_WORST_WAIT])
def test_a_sign_that_was_never_read_is_none_and_not_zero(sign: str) -> None:
    found = present(waits([sample(**{sign: 0.0})]))
    assert (found.most_waiting, found.longest_wait_ms) == ((0, None) if sign == POOL_WAITING else (None, 0.0))


def test_a_pooler_that_did_not_answer_for_a_while_has_unknown_waits() -> None:
    read = {POOL_WAITING: 0.0, POOL_WORST_WAIT: 0.0}
    seen = [
        replace(sample(**read), seconds=float(at), silent={"pgbouncer": 1.0} if at in (3, 4) else {}) for at in range(7)
    ]
    assert waits(seen) == Pool()
    assert present(waits(seen[:3])).most_waiting == 0
