"""Which keys of a configuration nobody knows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench.race.keys import CheckedKeys, beans_named, check_keys, check_url

LISTED = {
    *("name", "connector.class", "tasks.max", "topics", "errors.tolerance"),
    *("batch.size", "connection.url", "camel.aggregation.size", "camel.beans.aggregate", "camel.sink.url"),
    *("transforms", "transforms.payload.type", "transforms.payload.field"),
    *("consumer.override.max.poll.records", "value.converter", "value.converter.schemas.enable"),
}


def override(key: str) -> CheckedKeys:
    """What becomes of a key that the plan sets beside those that Connect lists."""
    return check_keys([*LISTED, key], LISTED, {key})


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("batch.sise", "batch.size"),
        ("camel.agregation.size", "camel.aggregation.size"),
        ("transforms.paylod.field", "transforms.payload.field"),
        ("consumer.override.max.pol.records", "consumer.override.max.poll.records"),
        ("consumer.overide.fetch.min.bytes", "consumer.override.fetch.min.bytes"),
    ],
)
def test_an_unknown_override_comes_with_the_nearest_key(key: str, nearest: str) -> None:
    said = f"is known neither to the connector nor to Connect; did you mean '{nearest}'?"
    assert override(key) == CheckedKeys({key: said}, ())
    # One that is like no key is unread, too.
    assert override("camel.qqq") == CheckedKeys({"camel.qqq": "is known neither to the connector nor to Connect"}, ())


@pytest.mark.parametrize("key", ["hibernate.show_sql", "camel.beans.retry", "producer.override.acks"])
def test_a_key_that_is_handed_on_is_not_confirmed(key: str) -> None:
    assert override(key) == CheckedKeys({}, (key,))


@pytest.mark.parametrize("key", ["camel.main.jmxEnabled", "camel.component.http.x", "camel.beans.retry.delay"])
def test_what_camel_refuses_itself_if_it_does_not_know_it_needs_no_confirmation(key: str) -> None:
    assert override(key) == CheckedKeys({}, ())


def test_parts_of_a_url_are_not_read_beside_the_whole_one() -> None:
    key = "camel.sink.endpoint.operation"
    assert override(key) == CheckedKeys({key: "is not read in addition to 'camel.sink.url'; set it in that URL"}, ())
    assert check_keys([key], LISTED, {key}) == CheckedKeys({}, ())


def test_a_connector_file_may_hold_what_its_connector_does_not_declare_but_no_misspelling() -> None:
    checked = check_keys(["table.name.format", "batch.sizes"], LISTED, ())
    assert (list(checked.unread), checked.unconfirmed) == (["batch.sizes"], ("table.name.format",))


@given(st.sets(st.text().filter(lambda key: not key.startswith("camel."))), st.sets(st.text()))
def test_each_key_is_listed_or_unread_or_unconfirmed(keys: set[str], overrides: set[str]) -> None:
    checked = check_keys(keys, LISTED, overrides)
    assert {*checked.unread, *checked.unconfirmed} == keys - LISTED
    assert not {*checked.unread} & {*checked.unconfirmed}


@pytest.mark.parametrize("value", ["sql:INSERT INTO a VALUES (#)?dataSource=#pool&batch=true", "#bean:pool", "#pool"])
def test_a_bean_that_a_value_names_is_read(value: str) -> None:
    named = beans_named([value, "#class:org.apache.commons.dbcp2.BasicDataSource", "tides"])
    assert named == {"camel.beans.pool"}
    assert check_keys(["camel.beans.pool", "camel.beans.poll"], LISTED, (), named).unconfirmed == ("camel.beans.poll",)


def test_an_option_of_a_url_that_camel_does_not_know_is_found() -> None:
    url = "elasticsearch://any?hostAddresses=a:1,b:2&opertion=Bulk&indexName=&mine=1"
    assert check_url(url) == CheckedKeys(
        {"camel.sink.url?opertion": "is none of Camel's options; did you mean 'operation'?"}, ("camel.sink.url?mine",)
    )


@pytest.mark.parametrize("url", ["", "elasticsearch://a?operation=Bulk&size=5", "sql:INSERT INTO a VALUES (#)"])
def test_a_url_without_mistakes_is_left_alone(url: str) -> None:
    assert check_url(url) == CheckedKeys({}, ())
