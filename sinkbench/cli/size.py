"""The command `size`: Kafka's brokers, or pipelines from stored runs."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console
from typer.core import TyperGroup

from sinkbench.cli.options import RESULTS, Results, commands, the_stack, write
from sinkbench.errors import EXIT_CHECK_FAILED, EXIT_INCONCLUSIVE, SizeError
from sinkbench.size import kafka as formula
from sinkbench.size.lines import lines, plain
from sinkbench.size.measured import measured, stored_runs
from sinkbench.size.sizes import Asked, p99_of, queries_of
from sinkbench.size.sizes import sizes as find_sizes
from sinkbench.tables.screen import record_bytes as bytes_of

progress = Console(soft_wrap=True, stderr=True)
AsJson = Annotated[bool, typer.Option("--json", help="for other programs")]


def _number(*names: str, what: str, least: float = 0.001, most: float = 1e9, default: bool = False) -> Any:
    """An option that is a number in these bounds; infinity and NaN are in none."""
    return typer.Option(*names, help=what, min=least, max=most, show_default=default)


class _Sizes(TyperGroup):
    """`size kafka`; everything else is `size runs`, without that word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = bool(args) and args[0] in {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, args if named else ["runs", *args])


app = commands()
sizes = typer.Typer(cls=_Sizes, help="`size [RUN ...] --rate R` answers from stored runs: see `size runs -h`.")
app.add_typer(sizes, name="size")


@sizes.command()
def kafka(
    storage_mb: Annotated[float, _number(what="what a broker's storage sustains, in MB/s")],
    network_mb: Annotated[float, _number(what="what its network sustains")],
    storage_network_mb: Annotated[
        float | None, _number(what="what the network to its storage sustains (default: no limit, as of a local disk)")
    ] = None,
    replicas: Annotated[int, _number(what="of each partition", least=1, default=True)] = 3,
    groups: Annotated[int, _number(what="consumer groups: one for each pipeline", least=0, default=True)] = 1,
    brokers: Annotated[str | None, typer.Option(help="a number, or several as 3..12", show_default=False)] = None,
    rate: Annotated[float | None, _number(what="records/s")] = None,
    record_bytes: Annotated[float | None, _number("--bytes", what="of a record", least=1)] = None,
    rate_mb: Annotated[float | None, _number(what="the rate in MB/s")] = None,
    utilization: Annotated[float, _number(what="the share of the limit that is used", most=1, default=True)] = 0.8,
    as_json: AsJson = False,
) -> None:
    """The sustained limit of a cluster, and what binds; with a rate the fewest brokers for it."""
    wanted = formula.rate_mb_of(rate, record_bytes, rate_mb)
    if brokers is None and wanted is None:
        raise SizeError("size kafka: needs --brokers for a limit, or a rate for the fewest brokers")
    of_each = (storage_mb, math.inf if storage_network_mb is None else storage_network_mb, network_mb)
    clusters = [
        formula.Cluster(count, replicas, groups, *of_each)
        for count in ([] if brokers is None else formula.brokers_of(brokers))
    ]
    one = formula.Cluster(replicas, replicas, groups, *of_each)
    fewest = None if wanted is None else formula.fewest_brokers(one, wanted, utilization)
    if as_json:
        rows = [None if each is None else formula.row(each, utilization) for each in (fewest, *clusters)]
        _put({"rate_mb": wanted, "fewest": rows[0], "clusters": rows[1:]})
    else:
        _put(formula.lines(clusters, utilization, wanted, fewest))


@sizes.command()
def runs(
    rate: Annotated[float, _number(what="records/s")],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="as in `show` (default: the newest of each mode)", show_default=False),
    ] = None,
    record_bytes: Annotated[
        float | None, _number("--bytes", what="of a record (default: as in the newest run)", least=1)
    ] = None,
    p99: Annotated[str | None, typer.Option(help="at most, as 500ms or 1s", show_default=False)] = None,
    queries: Annotated[str, typer.Option(help="answered by an index: all, none, or how many")] = "none",
    headroom: Annotated[
        float, _number(what="share of the rate that stays free", least=0, most=0.99, default=True)
    ] = 0.3,
    keep_days: Annotated[float | None, _number(what="days that records are kept")] = None,
    workers_may_fail: Annotated[int, _number(what="workers to have more", least=0, most=99, default=True)] = 1,
    cores_per_worker: Annotated[float, _number(what="of a worker's machine", default=True)] = 2.0,
    race: Annotated[str | None, typer.Option(metavar="PLAN", help="first race its drains, then constant loads")] = None,
    as_json: AsJson = False,
    results: Results = RESULTS,
) -> None:
    """Which pipelines meet a requirement, with tasks, workers, connections, cores, disk and network. Exit code 3 if
    none does and one is not decided, 1 if all fail."""
    p99_ms = None if p99 is None else p99_of(p99)
    known = (headroom, keep_days, workers_may_fail, cores_per_worker)
    asked = Asked(rate, record_bytes, p99_ms, queries_of(queries), *known)
    kept = stored_runs([*(names or []), *(_raced(race, asked, results) if race else [])], results)
    # Pipelines are compared with records of one size.
    asked = replace(asked, record_bytes=record_bytes or next(filter(None, map(bytes_of, kept)), None))
    found = find_sizes(measured(kept, asked.record_bytes), asked)
    used = [f"{each.summary.run}{'' if each.summary.complete else ' (not finished)'}" for each in kept]
    _put(plain(found, asked, used) if as_json else lines(found, asked, used))
    states = {each.state for each in found}
    if "qualifies" not in states:
        raise typer.Exit(EXIT_INCONCLUSIVE if "not decided" in states else EXIT_CHECK_FAILED)


def _raced(plan: str, asked: Asked, results: Path) -> Iterator[str]:
    """Races the plan with records of the asked size, then those pipelines that may qualify under the constant load that
    is to their rate what the asked rate is to that of the tasks it needs. Yields the runs."""
    from sinkbench.cli.plans import read_plan
    from sinkbench.plan.plan import MODES, Plan
    from sinkbench.race.session import run_plan

    def loads(offers: Mapping[str, int]) -> Plan:
        entries = [
            {**each.model_dump(exclude_unset=True), "records_per_second": offers[each.shown_name]}
            for each in drains.pipelines
            if each.shown_name in offers
        ]
        same = drains.model_dump(include={"workers", "load"}, exclude_unset=True)
        content = {"mode": "sustain", "pipelines": entries, "multiples": drains.multiples[:1], **same}
        return MODES["sustain"].model_validate({"name": "size-load", **content})

    drains, stack = read_plan(plan), the_stack(None)
    wrong = f"--race {plan}: {{}}; name a plan of drains, such as quick"
    if drains.mode != "drain":
        raise SizeError(wrong.format(f"has mode {drains.mode}"))
    try:
        # What no constant load can have is found before the race.
        loads({entry.shown_name: 1 for entry in drains.pipelines})
    except ValueError as failed:
        raise SizeError(wrong.format(" ".join(str(failed).split()))) from None
    if asked.record_bytes is not None:
        load = {**drains.load.model_dump(exclude_unset=True), "record_bytes": int(asked.record_bytes)}
        try:
            drains = drains.model_copy(update={"load": type(drains.load).model_validate(load)})
        except ValidationError as failed:
            raise SizeError(f"--bytes {asked.record_bytes:g}: {failed.errors()[0]['msg']}, to be raced") from None
    folder, _ = run_plan(stack, drains, results, progress)
    yield str(folder.path)
    found = find_sizes(measured(stored_runs([str(folder.path)], results), asked.record_bytes), asked)
    offers = {each.measured.name: each.offer for each in found if each.offer is not None and not each.fails}
    if offers:
        yield str(run_plan(stack, loads(offers), results, progress)[0].path)


def _put(found: dict[str, Any] | list[str]) -> None:
    text = json.dumps(found, indent=2, ensure_ascii=False) if isinstance(found, dict) else "\n".join(found)
    write(f"{text}\n")
