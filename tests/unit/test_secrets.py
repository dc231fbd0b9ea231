"""No secret is printed or stored, however it is written."""

import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinkbench import secrets
from sinkbench.secrets import conceal, conceal_in, redacted, redacted_values
from sinkbench.services.failures import in_one_line
from sinkbench.yamlfile import shown

SECRETS = st.text(st.characters(exclude_categories=["Cs"]), min_size=secrets.SHORTEST, max_size=20).filter(
    lambda text: text.casefold() not in secrets.WORDS
)


@given(st.lists(SECRETS, min_size=1, max_size=4), st.lists(st.text(max_size=8), min_size=2, max_size=9))
def test_no_secret_survives_in_any_text(known: list[str], around: list[str]) -> None:
    secrets._forms.clear()
    for secret in known:
        conceal(secret)
    text = around[0]
    for place, between in enumerate(around[1:]):
        text += known[place % len(known)] + between
    assert not any(secret in redacted(text) for secret in known)


@given(SECRETS)
def test_a_secret_is_found_where_it_is_quoted_for_an_address_or_escaped_for_json(secret: str) -> None:
    secrets._forms.clear()
    conceal(secret)
    in_json = [json.dumps(secret), json.dumps(secret, ensure_ascii=False), json.dumps(json.dumps(secret))]
    for written in (quote(secret, safe=""), quote_plus(secret), *in_json, repr(secret)):
        inner = written.strip("\"'\\") if len(written.strip("\"'\\")) >= secrets.SHORTEST else written
        assert inner not in redacted(f"<{written}>")


@given(st.text())
def test_text_without_secrets_stays_as_it_is(text: str) -> None:
    secrets._forms.clear()
    assert redacted(text) == text


def test_the_longest_secret_is_replaced_first_so_that_no_end_of_it_stays() -> None:
    conceal("hunter")
    conceal("hunter2-the-second")
    assert redacted("is hunter2-the-second, was hunter") == "is ***, was ***"


def test_every_line_of_a_secret_of_many_lines_is_one() -> None:
    conceal("-----BEGIN KEY-----\nMIIEvQ\n-----END KEY-----")
    assert redacted("the line MIIEvQ cannot be read") == "the line *** cannot be read"


def test_keys_and_numbers_of_a_record_stay() -> None:
    conceal("lost")
    conceal("1234")
    assert redacted_values({"lost": 1234, "why": ["all lost", None]}) == {"lost": 1234, "why": ["all ***", None]}


def test_a_secret_does_not_slip_through_where_a_message_is_cut() -> None:
    secret = "s3cret-" * 6
    conceal(secret)
    for before in range(130, 210):
        assert "s3cret" not in in_one_line(ValueError("x" * before + secret))
    assert "s3cret" not in shown("x" * 40 + secret)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("connection.password", "hush-hush"),
        ("camel.beans.pool.password", "hush-hush"),
        ("consumer.override.sasl.jaas.config", "hush-hush"),
        ("elasticsearch.api-key", "hush-hush"),
        ("client.secret", "hush-hush"),
        ("connection.url", "jdbc:postgresql://h/d?user=u&password=hush-hush&x=y"),
        ("connection.url", "jdbc:postgresql://u:hush-hush@h/d"),
        ("camel.sink.url", "elasticsearch://x?user=u&password=RAW(hush-hush)&y=z"),
        ("any", 'org.x.ScramLoginModule required username="u" password="hush-hush";'),
        ("any", "host=h password='hush-hush' user=u"),
    ],
)
def test_a_secret_that_stands_in_a_connector_file_is_one(key: str, value: str) -> None:
    conceal_in({key: value, "tasks.max": 3})
    assert redacted("it says hush-hush, and tasks.max") == "it says ***, and tasks.max"


@pytest.mark.parametrize(
    "value", ["${env:POSTGRES_PASSWORD}", "${file:/x:password}", "#class:org.x.Tokenizer", "true", 7]
)
def test_what_only_refers_to_a_secret_is_none(value: object) -> None:
    conceal_in({"connection.password": value, "url": "jdbc:x://h?password=${env:POSTGRES_PASSWORD}"})
    assert redacted(f"<{value}>${{env:POSTGRES_PASSWORD}}") == f"<{value}>${{env:POSTGRES_PASSWORD}}"


@pytest.mark.parametrize("word", ["postgres", "abc"])
def test_a_password_that_is_the_name_of_a_service_or_short_leaves_every_result_readable(word: str) -> None:
    conceal_in({"connection.password": word})
    assert conceal(word) == word
    assert redacted(f"{word}/jdbc") == f"{word}/jdbc"
