"""The user's own records keep their bytes, and what cannot be used is refused with its line."""

import csv
import gzip
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.checksum import checksum, parse
from loadgen.dataset.source import key_at, open_dataset, steps_of
from loadgen.dataset.store import Builder, Dataset, DatasetMaker, closed, opening
from loadgen.dataset.tables import Dialect
from loadgen.errors import DatasetError, OptionsError
from tests.support.counts import count

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text().filter(lambda name: name != "bench"), JSON, max_size=5)


@given(OBJECTS, st.text(alphabet=" \t", max_size=3), st.booleans())
def test_only_bench_is_added_to_a_record(value: dict[str, Any], blanks: str, ascii_only: bool) -> None:
    written = f"{blanks}{json.dumps(value, ensure_ascii=ascii_only)}{blanks}".encode()
    found = closed(opening(written), b'{"seq": 7}')
    assert json.loads(found) == {**json.loads(written), "bench": {"seq": 7}}
    assert found.startswith(written.strip(b" \t")[:-1])


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("customer.id", b"c-1"),
        ("number", b"7"),
        ("list.1.x", b"2"),
        ("/with.dot", b"d"),
        ("/a~1b/c", b"s"),
        ("null", None),
        ("customer", None),
        ("list.9", None),
    ],
)
def test_a_path_leads_to_the_key(path: str, key: bytes | None) -> None:
    record = {"customer": {"id": "c-1"}, "number": 7, "null": None, "with.dot": "d", "a/b": {"c": "s"},
              "list": [{"x": 1}, {"x": 2}]}  # fmt: skip
    assert key_at(record, steps_of(path)) == key
    with pytest.raises(OptionsError, match=r"key: found 'a\.\.b', which has an empty step"):
        steps_of("a..b")


TEXT = b'{"id": 1, "x": 1.0}\n\n  {"id": 2}\r\n{"id": "\xc3\xa9"}'
RECORDS = [b'{"id": 1, "x": 1.0}', b'{"id": 2}', b'{"id": "\xc3\xa9"}']


def written(folder: Path, name: str, content: bytes) -> str:
    (folder / name).write_bytes(content)
    return str(folder / name)


def texts(dataset: Dataset) -> list[bytes]:
    """The records as they came."""
    return [dataset.value(index) for index in range(dataset.facts.records)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.ndjson", TEXT),
        ("a.jsonl", b"\xef\xbb\xbf" + TEXT),
        ("a.ndjson.gz", gzip.compress(TEXT[:9], mtime=0) + gzip.compress(TEXT[9:], mtime=0)),
        ("a.json", b" [" + b" ,\n ".join(RECORDS) + b"\n]\n"),
        ("without an ending", b"[" + b",".join(RECORDS) + b"]"),
    ],
)
def test_every_kind_of_json_file_gives_its_records_with_the_same_digest(
    tmp_path: Path, name: str, content: bytes
) -> None:
    dataset = open_dataset(written(tmp_path, name, content), "id")
    assert texts(dataset) == RECORDS
    keys = [b"1", b"2", "é".encode()]
    assert [dataset.key(index) for index in range(3)] == keys
    facts = dataset.facts
    assert (facts.records, facts.bytes, facts.with_key, facts.whole) == (3, sum(map(len, RECORDS)), 3, True)
    assert (facts.smallest_bytes, facts.median_bytes, facts.largest_bytes) == (9, 12, 19)
    assert facts.sha256 == built(RECORDS, keys).facts.sha256 != built(RECORDS).facts.sha256


def test_a_table_gives_objects_with_the_types_of_its_columns(tmp_path: Path) -> None:
    table = b'id;code;price;ok;text\n1;007;1.50;true;"a; ""b"""\n2;12;;false;\n'
    assert [json.loads(text) for text in texts(open_dataset(written(tmp_path, "t.csv", table)))] == [
        {"id": 1, "code": "007", "price": 1.5, "ok": True, "text": 'a; "b"'},
        {"id": 2, "code": "12", "price": None, "ok": False, "text": None},
    ]
    assert b'"price": 1.50' in texts(open_dataset(written(tmp_path, "t.csv.gz", gzip.compress(table))))[0]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b'station;"level, in m, above MLLW"\n8461490;1.204\n', {"station": 8461490, "level, in m, above MLLW": 1.204}),
        (b'station,"low; mean; high"\n1,"0.11; 0.84; 1.62"\n', {"station": 1, "low; mean; high": "0.11; 0.84; 1.62"}),
        (b'"a ""\n"" b",c\n1,2\n', {'a "\n" b': 1, "c": 2}),
        (b"a\tb\n1\tx\n", {"a": 1, "b": "x"}),
        (b"a|b\r\n1|2;3\r\n\r\n", {"a": 1, "b": "2;3"}),
        (b'"a, b, c"\n"1, 2, 3"\n', {"a, b, c": "1, 2, 3"}),
        (b"station;level, in m, above MLLW\n8461490;1.204\n", {"station": 8461490, "level, in m, above MLLW": 1.204}),
        (b"a,b\n1,'x, y'\n", {"a": 1, "b": "x, y"}),
        (b"\xef\xbb\xbfa\n1\n", {"a": 1}),
    ],
)
def test_a_delimiter_in_quotation_marks_makes_no_column(tmp_path: Path, content: bytes, found: dict[str, Any]) -> None:
    assert [json.loads(text) for text in texts(open_dataset(written(tmp_path, "t.csv", content)))] == [found]


@pytest.mark.parametrize(
    ("content", "dialect", "found"),
    [
        (b"1,2\n3,4\n", (None, True), [{"1": 3, "2": 4}]),
        (b"1,2\n3,4\n", (None, False), [{"column0": 1, "column1": 2}, {"column0": 3, "column1": 4}]),
        (b"a~b\n1~x,y\n", ("~", None), [{"a": 1, "b": "x,y"}]),
        (b"a\tb\n1\t2,3\n", ("\\t", True), [{"a": 1, "b": "2,3"}]),
        (b"level\n1,204\n", (";", True), [{"level": "1,204"}]),
    ],
)
def test_what_is_said_of_a_table_counts(tmp_path: Path, content: bytes, dialect: Dialect, found: object) -> None:
    dataset = open_dataset(written(tmp_path, "t.txt", content), dialect=dialect)
    assert [json.loads(text) for text in texts(dataset)] == found


CELLS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(',;"\n|\t'), max_size=9).map(
    "x".__add__
)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5), st.sampled_from(",;|\t~"))
@settings(deadline=None, max_examples=count(60, 15))
def test_a_table_gives_the_cells_that_were_written(rows: list[tuple[str, str]], delimiter: str) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("a", "b"), *rows])
    with TemporaryDirectory() as folder:
        dataset = open_dataset(written(Path(folder), "t.csv", text.getvalue().encode()), dialect=(delimiter, True))
    assert [tuple(json.loads(record).values()) for record in texts(dataset)] == rows


def test_what_is_not_as_in_the_source_is_told(tmp_path: Path) -> None:
    table = b'id,v,w,level\n1,NaN,1.50,"1,204"\n2,-inf,Infinity,7\n3,2,nan,"1.204,5"\n'
    dataset = open_dataset(written(tmp_path, "t.csv", table))
    assert [json.loads(text) for text in texts(dataset)] == [
        {"id": 1, "v": None, "w": 1.5, "level": "1,204"},
        {"id": 2, "v": None, "w": None, "level": "7"},
        {"id": 3, "v": 2, "w": None, "level": "1.204,5"},
    ]
    assert dataset.facts.notes == (
        "read as CSV, columns: 4, delimiter: ',', quotes: \"",
        "numbers with a comma stay text: column level (1,204)",
        "NaN and infinity become null: row 1, column v; row 2, column v; row 2, column w and 1 more",
    )
    assert dataset.facts.notes[2] in dataset.facts.in_words
    zero = open_dataset(written(tmp_path, "a.ndjson", b'{"a": "\\\\u0000"}\n{"a": "\\u0000"}'))
    assert zero.facts.notes == ("\\u0000, which PostgreSQL's jsonb refuses: line 2",)


def test_a_bulk_file_gives_its_documents_with_their_ids_as_keys(tmp_path: Path) -> None:
    with_id, others = b'{"index": {"_id": 7}}\n{"a": 1}\n', b'{"delete": {"_id": "7"}}\n{"create":{}}\n{"index": 2}'
    dataset = open_dataset(written(tmp_path, "bulk.json", with_id + others))
    assert texts(dataset) == [b'{"a": 1}', b'{"index": 2}']
    assert ([dataset.key(0), dataset.key(1)], dataset.facts.left_out) == ([b"7", None], 1)
    assert "read as an Elasticsearch bulk file" in dataset.facts.in_words
    ordinary = b'{"index": {"name": "x"}}\n{"index": "y"}'
    assert open_dataset(written(tmp_path, "records.json", ordinary)).facts.records == 2


def test_a_parquet_file_gives_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows [1].parquet"
    with duckdb.connect(":memory:") as connection:
        rows = """SELECT range AS id, {'x': [1, 2]} AS below, NULL AS nothing, 1.50::DECIMAL(38, 2) AS exact,
            [1.5::DOUBLE, 'nan'::DOUBLE, '-inf'::DOUBLE] AS gaps, 'NaN, "inf' AS text FROM range(3)"""
        connection.execute(f"COPY ({rows}) TO '{path}'")
    dataset = open_dataset(str(path))
    assert b'"exact": 1.50,' in dataset.value(2)
    assert json.loads(dataset.value(2)) == {
        "id": 2, "below": {"x": [1, 2]}, "nothing": None, "exact": 1.5, "gaps": [1.5, None, None], "text": 'NaN, "inf',
    }  # fmt: skip
    assert dataset.facts.notes[0].endswith("row 1, column gaps; row 1, column gaps; row 2, column gaps and 3 more")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.ndjson", b'{"a": 1}\n{"a": 2', "line 2: is no JSON .* ends in the middle of a record"),
        ("a.ndjson", b'{"a": 1}\n\n[3]\n', "line 3: is JSON, but no object; correct it"),
        ("a.ndjson", b'{"a": 1}\n{"bench": {}}\n', 'line 2: has a member "bench", which'),
        ("a.ndjson", b'{"a": NaN}', "line 1: NaN is no number"),
        ("a.ndjson", b'{"a": 1} {"b": 2}', "line 1: is no JSON"),
        ("a.ndjson", b'{"a": "\xff"}', r"line 1: is not UTF-8 \(byte 8\)"),
        ("a.ndjson", b'{"a":' * 100_000, "line 1: .*nested too deeply"),
        ("a.ndjson", b" \n", "has no record"),
        ("a.ndjson.gz", gzip.compress(TEXT * 99, mtime=0)[:-20], "cannot be unpacked, or ends in the middle"),
        ("a.json", b'[{"a": 1},\n', "is no JSON array that DuckDB can read .*|ends in the middle of its array"),
        ("a.json", b'[{"a": 1}]\n[]', "is no JSON array that DuckDB can read .*|ends in the middle of its array"),
        ("a.json", b'[{"a": 1},\n\n 3]', "element 2: is JSON, but no object"),
        ("a.json", b'[{"a": NaN}]', "element 1: is no JSON|NaN is no number"),
        ("a.json", b"[]", "has no record"),
        ("a.csv", b'a,b\n1,2\n3,"4\n', "line 3: is no row .*, or the file ends in the middle of it"),
        ("a.csv", b"a,b\n1,2\n3\n", r"line 3: is no row \(Expected Number of Columns: 2 Found: 1\), .* --delimiter"),
        ("a.csv", b"Title\n\na,b\n1,2\n", r"line 3: is no row \(Expected Number of Columns: 1 Found: 2\)"),
        ("a.csv", b"a,a\n1,2\n", "line 1: has a column without a name, or two of one name"),
        ("a.csv", b"a,b\n1,\xff\n", r"line 2: is no row \(Invalid unicode\)"),
        ("a.csv", b"1,2\n3,4\n", "line 1: '1,2' may be names or a record; say --header for names"),
        ("a.ndjson", b'{"a": "\\ud83d\\ude00"}\n{"a": ["\\uD83D"]}', r"line 2: has half a character, '\\ud83d', which"),
        ("a.ndjson", b'{"bench.seq": 1}', 'line 1: has a member "bench.seq", which'),
        ("a.json", b'{"index": {}}\n{"a": 1}\n{"b": 2}\n', "line 3: is no action of a bulk file with a whole document"),
        ("a.json", b'{"update": {"_id": 1}}\n{"doc": {}}', "line 1: is no action of a bulk file with a whole document"),
        ("a.json", b'{"index": {}}', "line 1: is no JSON .* cut off"),
        ("a.parquet", b"PAR1nothing", "is no Parquet file that DuckDB can read"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_line(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    with pytest.raises(DatasetError, match=why):
        open_dataset(written(tmp_path, name, content))


def test_a_large_file_is_used_as_far_as_it_may_be_held(tmp_path: Path) -> None:
    path = written(tmp_path, "a.ndjson", b"".join(b'{"id": %d}\n' % number for number in range(1_000)))
    facts = open_dataset(path, most_bytes=4_000).facts
    assert 50 < facts.records < 400
    assert not facts.whole
    with pytest.raises(DatasetError, match="is no file; name a file of records"):
        open_dataset(str(tmp_path))


def built(records: list[bytes], keys: list[bytes | None] | None = None) -> Dataset:
    builder = Builder()
    for text, key in zip(records, keys or [None] * len(records), strict=True):
        assert builder.add(text, key)
    return builder.build("here", whole=True)


def test_a_load_goes_round_and_says_so_only_in_bench() -> None:
    made = DatasetMaker(built(RECORDS, [b"a", None, b"c"]), "r").batch(4, 3, [1, 2, 3], 9)
    assert [message["key"] for message in made] == [None, b"c", b"a"]
    third, _, first = (parse(str(message["value"], "utf-8")) for message in made)  # type: ignore[call-overload]
    bench = b'{"run": "r", "seq": 4, "due_us": 1, "sent_us": 9, "sum": "%b"}' % checksum(third).encode()
    assert made[0]["value"] == b'{"id": 2, "bench": %b}' % bench
    assert first["bench"] == {"run": "r", "seq": 6, "due_us": 3, "sent_us": 9, "sum": checksum(first)}


@given(OBJECTS, st.text())
@settings(deadline=None)
def test_every_record_bears_its_checksum_also_in_the_file_that_hands_it_on(members: dict[str, Any], run: str) -> None:
    dataset = built([b"{}", json.dumps(members).encode()])
    with TemporaryDirectory() as folder:
        dataset.write(Path(folder, "set"))
        for each in (dataset, Dataset.read(Path(folder, "set"))):
            for message in DatasetMaker(each, run).batch(10**17, 3, 10**15, 10**15):
                record = parse(message["value"])  # type: ignore[arg-type]
                assert record["bench"]["sum"] == checksum(record)


@given(st.lists(st.integers(0, 3_000_000), min_size=1, max_size=5), st.integers(0, 10**12))
@settings(deadline=None)
def test_a_batch_of_large_records_is_small(sizes: list[int], seq: int) -> None:
    maker = DatasetMaker(built([b'{"a": "%s"}' % (b"x" * size) for size in sizes]), "r")
    count = maker.longest_batch(seq)
    made = [len(message["value"]) for message in maker.batch(seq, count, 0, 0)]  # type: ignore[arg-type]
    assert 1 <= count <= 500
    assert count == 1 or sum(made) < (4 << 20) + 500 * 120
    assert max(made) <= maker.largest_bytes


def test_the_file_of_a_data_set_hands_it_on(tmp_path: Path) -> None:
    first = built(RECORDS, [b"a", None, b""])
    first.write(tmp_path / "set")
    second = Dataset.read(tmp_path / "set")
    assert (second.facts, second.digest(), texts(second)) == (first.facts, first.facts.sha256, RECORDS)
    assert [second.key(index) for index in range(3)] == [b"a", None, b""]
    whole = (tmp_path / "set").read_bytes()
    (tmp_path / "set").write_bytes(whole.replace(b'"id": 2', b'"id": 3'))
    assert Dataset.read(tmp_path / "set").digest() != first.facts.sha256
    for content in (whole[:-1], whole[:400], b"{}\n", b""):
        (tmp_path / "set").write_bytes(content)
        with pytest.raises(DatasetError, match="has no whole data set"):
            Dataset.read(tmp_path / "set")
