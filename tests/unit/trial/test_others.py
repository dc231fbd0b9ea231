"""Who else was there between two looks."""

from sinkbench.trial.values import Others, met, risen


def test_a_connector_that_ran_at_either_look_is_named_with_its_most_tasks() -> None:
    assert met(Others({"a": 1}), Others({"a": 3, "b": 2}), 1_000) == [
        "another connector, a, ran 3 tasks on these workers",
        "another connector, b, ran 2 tasks on these workers",
    ]
    assert met(Others({"a": 1}), Others({}), 1_000) == ["another connector, a, ran 1 task on these workers"]
    assert met(Others({}), Others({}), 1_000) == []


def test_what_is_written_elsewhere_counts_from_a_hundredth_of_ones_own_records_on() -> None:
    before = Others({}, {"orders": 500}, {"orders of postgres": 500})
    little = Others({}, {"orders": 2_499}, {"orders of postgres": 2_499})
    much = Others({}, {"orders": 2_500}, {"orders of postgres": 5_500})
    assert met(before, little, 200_000) == []
    assert met(before, much, 200_000) == [
        "2,000 records went into the topic orders",
        "5,000 records went into orders of postgres",
    ]


def test_what_connect_writes_for_itself_is_no_load_even_beside_a_slow_trial() -> None:
    before = Others({}, {"connect-status": 100})
    assert met(before, Others({}, {"connect-status": 152}), 2_000) == []
    much = Others({}, {"connect-status": 1_100, "orders": 1_000})
    orders = "1,000 records went into the topic orders"
    assert met(before, much, 2_000) == ["1,000 records went into the topic connect-status", orders]
    assert met(before, much, 2_000, lambda topic: topic == "connect-status") == [orders]


def test_counts_that_began_anew_have_not_risen() -> None:
    assert risen({"a": 5, "b": 5}, {"a": 3, "b": 6, "c": 2}) == {"b": 1, "c": 2}
