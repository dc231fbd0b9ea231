"""The folder of a run: its plan, a line for each trial, samples, and the summary, as docs/format.md has it.

Read and write errors are UserErrors. Every text is redacted before it is written: a service may quote a secret."""

import csv
import errno
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import JsonValue, ValidationError

from loadgen.reading import parse_json, printable, read_bytes
from sinkbench.errors import UserError
from sinkbench.results import RunSummary, TrialRecord, settled
from sinkbench.secrets import redacted, redacted_values
from sinkbench.yamlfile import to_yaml

if TYPE_CHECKING:
    from sinkbench.plan.plan import Plan

_NEEDED_BYTES = 2**20
# Even a year of trials is smaller.
_MOST_BYTES = 2**30
_FIRST_COLUMNS = ("seconds", "stored", "uncommitted")

_ADVICE = {
    errno.ENOSPC: "free some space on its disk",
    errno.EDQUOT: "free some of your quota on its disk",
    errno.EACCES: "make it writable for you, or choose another folder",
    errno.EPERM: "make it writable for you, or choose another folder",
    errno.EROFS: "its disk is read-only; choose another folder",
    errno.EEXIST: "move away the file that is in its place, or choose another folder",
    errno.ENOTDIR: "move away the file that is in its place, or choose another folder",
    errno.EISDIR: "move away the folder that is in its place",
}


def check_writable(root: Path) -> None:
    """Checks that runs can be stored in `root`: writes and removes a megabyte, to find a full disk at once."""
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root) as trial:
            trial.write(b"\0" * _NEEDED_BYTES)
            trial.flush()
            os.fsync(trial.fileno())


class RunFolder:
    """The folder of a run; `create` makes a new one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.plan_path = path / "plan.yaml"
        self.trials_path = path / "trials.jsonl"
        self.summary_path = path / "summary.json"

    @property
    def run(self) -> str:
        """The run's id: its start in UTC and its plan, as `20261121T034800Z-quick`."""
        return self.path.name

    @classmethod
    def create(cls, root: Path, plan: "Plan", connectors: Path, now: datetime | None = None) -> Self:
        """A new folder below `root`, to which `latest` points; of two runs in one second the second's id ends in -2."""
        stem = f"{(now or datetime.now(UTC)).astimezone(UTC):%Y%m%dT%H%M%SZ}-{plan.name}"
        folder = cls(_make_unique(root, stem))
        with writing(folder.path):
            (folder.path / "samples").mkdir()
            _replace(folder.plan_path, to_yaml({key: redacted_values(value) for key, value in plan.whole().items()}))
            for pipeline in sorted({entry.pipeline for entry in plan.pipelines}):
                _copy_text(connectors / f"{pipeline}.json", (folder.path / "connectors" / pipeline).parent)
            for sink, target in sorted({(entry.sink, entry.target) for entry in plan.pipelines if entry.target}):
                _copy_text(connectors.parent / target, folder.path / "targets" / sink)
            for query in [] if plan.queries is None else sorted((connectors.parent / plan.queries).glob("*.yaml")):
                _copy_text(query, folder.path / "queries")
        folder._become_latest()
        return folder

    def append_trial(self, trial: TrialRecord) -> None:
        """Appends a line to trials.jsonl, and returns when it is on disk."""
        line = _clean_json(trial.model_dump(mode="json"), None).encode()
        with writing(self.trials_path):
            with self.trials_path.open("ab") as trials:
                if self.trials_path.is_file():
                    # A killed run may have left an incomplete line.
                    trials.truncate(self.trials_path.read_bytes().rfind(b"\n") + 1)
                trials.write(line)
                trials.flush()
                os.fsync(trials.fileno())
            sync_folder(self.path)

    def write_samples(self, trial: str, rows: Sequence[Mapping[str, float | int | str | None]]) -> str:
        """Writes a trial's samples as CSV; returns the path relative to the run's folder. Columns are sorted after
        `seconds`, `stored` and `uncommitted`, so that a failed service does not change their order."""
        if Path(trial).name != trial:
            raise ValueError(f"trial {trial!r} cannot be the name of a file")
        keys = {key for row in rows for key in row}
        columns = [key for key in _FIRST_COLUMNS if key in keys] + sorted(keys.difference(_FIRST_COLUMNS))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: redacted_values(value) for key, value in row.items()} for row in rows)
        relative = f"samples/{trial}.csv"
        with writing(self.path / relative):
            _replace(self.path / relative, text.getvalue())
        return relative

    def write_summary(self, summary: RunSummary) -> None:
        """Writes summary.json atomically, and points `latest` to this run."""
        with writing(self.summary_path):
            _replace(self.summary_path, _clean_json(summary.model_dump(mode="json"), 2))
        self._become_latest()

    def _become_latest(self) -> None:
        latest = self.path.parent / "latest"
        with writing(latest):
            link = self.path.parent / f".latest-{os.getpid()}"
            link.unlink(missing_ok=True)
            link.symlink_to(self.run)
            try:
                link.replace(latest)
            except OSError:
                link.unlink()
                raise


def read_trials(path: Path) -> list[TrialRecord]:
    """The trials of a trials.jsonl, if any. An incomplete last line is skipped; another bad line is a UserError."""
    lines = _read(path).split(b"\n") if path.exists() else [b""]
    trials = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            trials.append(TrialRecord.model_validate(parse_json(line)))
        except ValueError as broken:
            reason = _first(broken) if isinstance(broken, ValidationError) else broken
            raise UserError(f"{path}:{number}: is not a trial ({reason}); restore or remove the line") from None
    return settled(trials)


def read_summary(path: Path) -> RunSummary:
    file = path / "summary.json" if path.is_dir() else path
    content = _read(file)
    try:
        found = parse_json(content)
        if isinstance(found, dict) and found.get("format") != 1:
            raise UserError(f"{file}: has format {found.get('format')!r}, this sinkbench reads format 1; race again")
        return RunSummary.model_validate(found)
    except ValidationError as invalid:
        raise UserError(f"{file}: is not the summary of a run ({_first(invalid)}); name a folder of results") from None
    except ValueError as broken:
        raise UserError(f"{file}: is not JSON ({broken}); name a folder of results") from None


def copy_run(run: Path, to: Path) -> None:
    """Copies a run's folder without its samples to `to`, which is replaced as a whole."""
    new, old = (to.with_name(f".{to.name}.{state}") for state in ("new", "old"))
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
    with writing(to):
        shutil.copytree(run, new, ignore=shutil.ignore_patterns("samples", "report.html"))
        if to.exists():
            to.rename(old)
        new.rename(to)
        shutil.rmtree(old, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    with writing(path):
        path.write_text(text, encoding="utf-8")


def _clean_json(content: JsonValue, indent: int | None) -> str:
    separators = (",", ":") if indent is None else None
    return json.dumps(redacted_values(content), indent=indent, separators=separators, ensure_ascii=False) + "\n"


def _copy_text(source: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / source.name).write_text(redacted(source.read_text(encoding="utf-8")), encoding="utf-8")


def _make_unique(root: Path, stem: str) -> Path:
    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
    path, number = root / stem, 1
    while True:
        with writing(path), suppress(FileExistsError):
            path.mkdir()
            return path
        number += 1
        path = root / f"{stem}-{number}"


def _replace(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields an empty file that then replaces `path` atomically, also in case of a crash; not after an error."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.touch()
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Syncs a folder's entries to disk; without it a power failure may restore an old file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> bytes:
    return read_bytes(path, UserError, _MOST_BYTES, if_missing="name a run below the folder of results")


def _first(invalid: ValidationError) -> str:
    detail = invalid.errors()[0]
    # A key of the file may contain anything.
    where = printable(".".join(map(str, detail["loc"])).replace("\n", "\\n"))
    return f"{where}: {detail['msg']}" if where else detail["msg"]


@contextmanager
def writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as failed:
        advice = _ADVICE.get(failed.errno or 0, "check the folder, or choose another one")
        raise UserError(f"{path}: cannot be written ({failed.strerror or failed}); {advice}") from failed
