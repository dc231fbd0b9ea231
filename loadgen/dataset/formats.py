"""The records of a file of JSON, one by one, each with its line and its own bytes."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import zstandard

from loadgen.dataset.record import BLANK, DECODER
from loadgen.errors import DatasetError

__all__ = ["MOST_RECORD_BYTES", "Found", "elements", "first_bytes", "lines", "plain_chunks"]

MOST_RECORD_BYTES = 16 << 20
"""No record may be longer; brokers take far less unless they are told to."""
CHUNK_BYTES = 1 << 20
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# A frame may ask for as much memory as this, as `zstd --long=31` makes them.
MOST_WINDOW_BYTES = 1 << 31
BOM = codecs.BOM_UTF8
BLANKS = re.compile(r"[ \t\r\n]+")


class Found(NamedTuple):
    """A record in a file or a topic.

    Attributes:
        where: where it stands there, for a person.
        text: its bytes.
        unended: whether it is the last line of a file that lacks its line break: if it is no record, it was cut off.
        line_of_json: whether it is a line of newline-delimited JSON.
    """

    where: str
    text: bytes
    unended: bool = False
    line_of_json: bool = False


def first_bytes(path: Path) -> bytes:
    """The first 4 KiB of what a file holds, unpacked. Raises DatasetError if it cannot be read."""
    start = b""
    for chunk in plain_chunks(path, 4096):
        start += chunk
        if len(start) >= 4096:
            break
    return start[:4096]


def plain_chunks(path: Path, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """What a file holds, unpacked if it is packed by gzip or zstd, which its first bytes tell.

    Raises DatasetError if it cannot be read, or ends before what was packed does.
    """
    try:
        if not path.is_file():
            found = "is no file" if path.exists() else "there is no such file"
            raise DatasetError(f"{path}: {found}; name a file of records")
        with path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic[:2] == GZIP:
                yield from _chunks(gzip.GzipFile(fileobj=file), chunk_bytes)
            elif magic == ZSTD:
                yield from _unzstd(file, path, chunk_bytes)
            else:
                yield from _chunks(file, chunk_bytes)
    except EOFError:
        raise DatasetError(f"{path}: ends in the middle of what gzip has packed; fetch it again") from None
    except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        raise DatasetError(f"{path}: cannot be unpacked ({error}); fetch it again") from None
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None


def _chunks(file: BinaryIO | gzip.GzipFile, chunk_bytes: int) -> Iterator[bytes]:
    while chunk := file.read(chunk_bytes):
        yield chunk


def _unzstd(file: BinaryIO, path: Path, chunk_bytes: int) -> Iterator[bytes]:
    # Not its stream_reader, which does not tell a whole frame from one that was cut off.
    unpacker = zstandard.ZstdDecompressor(max_window_size=MOST_WINDOW_BYTES)
    frame, packed = None, b""
    while packed or (packed := file.read(chunk_bytes)):
        frame = frame or unpacker.decompressobj()
        if chunk := frame.decompress(packed):
            yield chunk
        packed = frame.unused_data if frame.eof else b""
        frame = None if frame.eof else frame
    if frame is not None:
        raise DatasetError(f"{path}: ends in the middle of what zstd has packed; fetch it again")


def lines(path: Path) -> Iterator[Found]:
    """The records of newline-delimited JSON: a line each, without the blanks around it; empty lines are none.

    Raises DatasetError if the file cannot be read, or a line is longer than a record may be.
    """
    number, rest = 0, b""
    for chunk in plain_chunks(path):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            number += 1
            yield from _of_line(path, number, line)
        if len(rest) > MOST_RECORD_BYTES:
            raise _too_long(f"{path}, line {number + 1}")
    yield from _of_line(path, number + 1, rest, unended=True)


def _of_line(path: Path, number: int, line: bytes, *, unended: bool = False) -> Iterator[Found]:
    text = (line.removeprefix(BOM) if number == 1 else line).strip(BLANK)
    if len(text) > MOST_RECORD_BYTES:
        raise _too_long(f"{path}, line {number}")
    if text:
        yield Found(f"{path}, line {number}", text, unended, line_of_json=True)


def _too_long(where: str) -> DatasetError:
    return DatasetError(f"{where}: has more than {MOST_RECORD_BYTES:,} bytes; no record may be longer")


def elements(path: Path) -> Iterator[Found]:
    """The records of a file that is one JSON array: its elements, each with the line that it begins in.

    Raises DatasetError if the file cannot be read, is no such array, or ends before the array does.
    """
    return iter(_Array(path))


class _Array:
    """A JSON array that is read as far as it is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chunks = plain_chunks(path)
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._line = 1

    def __iter__(self) -> Iterator[Found]:
        self._expect("[", "is no JSON array")
        if self._next() == "]":
            self._at += 1
        else:
            yield self._element()
            while self._next() != "]":
                self._expect(",", "has neither a comma nor a closing bracket after an element")
                yield self._element()
            self._at += 1
        if self._next():
            raise DatasetError(f"{self._where()}: something follows the array; one file is one array")

    def _where(self) -> str:
        return f"{self._path}, line {self._line}"

    def _fill(self) -> bool:
        """Reads on; returns whether there was more."""
        chunk = next(self._chunks, None)
        try:
            more = self._decoder.decode(chunk or b"", final=chunk is None)
        except UnicodeDecodeError:
            raise DatasetError(
                f"{self._where()}: is not UTF-8, or something after it is not; save it as such"
            ) from None
        self._text, self._at = self._text[self._at :] + more, 0
        return chunk is not None

    def _next(self) -> str:
        """The next character that is no blank; empty at the end."""
        while True:
            found = BLANKS.match(self._text, self._at)
            end = self._at if found is None else found.end()
            self._line += self._text.count("\n", self._at, end)
            self._at = end
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill() and not self._text:
                return ""

    def _expect(self, mark: str, otherwise: str) -> None:
        found = self._next()
        if not found:
            raise DatasetError(f"{self._where()}: the file ends in the middle of its array; fetch it again")
        if found != mark:
            raise DatasetError(f"{self._where()}: {otherwise}")
        self._at += 1

    def _element(self) -> Found:
        if not self._next():
            raise DatasetError(f"{self._where()}: the file ends in the middle of its array; fetch it again")
        end = self._end_of_element()
        text = self._text[self._at : end]
        found = Found(self._where(), text.encode("utf-8"))
        self._line += text.count("\n")
        self._at = end
        return found

    def _end_of_element(self) -> int:
        while True:
            try:
                _, end = DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                line = self._line + self._text.count("\n", self._at, error.pos)
                # Not all of it may have been read; what is wrong in itself stays so.
                if len(self._text) - self._at > MOST_RECORD_BYTES:
                    raise _too_long(self._where()) from None
                if not self._fill():
                    cut = "or the file ends in the middle of it"
                    raise DatasetError(
                        f"{self._where()}: the element is no JSON ({error.msg}, line {line}), {cut}; mend it"
                    ) from None
            except ValueError as error:
                raise DatasetError(f"{self._where()}: the element is no JSON: {error}") from None
            except RecursionError:
                raise DatasetError(f"{self._where()}: the element is nested too deeply") from None
            else:
                # A number may go on in what is not read yet.
                if end < len(self._text) or not self._fill():
                    return end
