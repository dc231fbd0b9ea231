"""The command `size`: Kafka's brokers, or pipelines from stored runs."""

import json
import math
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sinkbench.cli.options import RESULTS, Results, commands, write
from sinkbench.errors import EXIT_CHECK_FAILED, EXIT_INCONCLUSIVE, SizeError
from sinkbench.size import kafka as formula
from sinkbench.size.asked import Asked, p99_of, queries_of
from sinkbench.size.lines import lines, plain
from sinkbench.size.measured import measured, stored_runs
from sinkbench.size.sizes import sizes as find_sizes

AsJson = Annotated[bool, typer.Option("--json", help="for other programs")]
Rate = Annotated[float | None, typer.Option(help="records/s", show_default=False)]
Bytes = Annotated[float | None, typer.Option("--bytes", help="of a record", show_default=False)]


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
    storage_mb: Annotated[float, typer.Option(help="what a broker's storage sustains, in MB/s")],
    network_mb: Annotated[float, typer.Option(help="what its network sustains")],
    storage_network_mb: Annotated[
        float | None,
        typer.Option(help="what the network to its storage sustains (default: no limit, as of a local disk)"),
    ] = None,
    replicas: Annotated[int, typer.Option(help="of each partition")] = 3,
    groups: Annotated[int, typer.Option(help="consumer groups: one for each pipeline")] = 1,
    brokers: Annotated[str | None, typer.Option(help="a number, or several as 3..12", show_default=False)] = None,
    rate: Rate = None,
    record_bytes: Bytes = None,
    rate_mb: Annotated[float | None, typer.Option(help="the rate in MB/s", show_default=False)] = None,
    utilization: Annotated[float, typer.Option(help="the share of the limit that is used")] = 0.8,
    as_json: AsJson = False,
) -> None:
    """The sustained limit of a cluster, and what binds; with a rate the fewest brokers for it."""
    wanted = formula.rate_mb_of(rate, record_bytes, rate_mb)
    if brokers is None and wanted is None:
        raise SizeError("size kafka: needs --brokers for a limit, or a rate for the fewest brokers")
    formula.positive(utilization, "--utilization")
    if utilization > 1:
        raise SizeError(f"--utilization {utilization:g}: must be a share up to 1, as 0.8 for 80 %")
    of_each = (storage_mb, math.inf if storage_network_mb is None else storage_network_mb, network_mb)
    clusters = [
        formula.Cluster(count, replicas, groups, *of_each)
        for count in ([] if brokers is None else formula.brokers_of(brokers))
    ]
    one = formula.Cluster(replicas, replicas, groups, *of_each)
    fewest = None if wanted is None else formula.fewest_brokers(one, wanted, utilization)
    if as_json:
        found = {"clusters": [formula.row(each, utilization) for each in clusters], "rate_mb": wanted}
        found["fewest"] = None if fewest is None else formula.row(fewest, utilization)
        write(json.dumps(found, indent=2) + "\n")
        return
    write("\n".join(formula.lines(clusters, utilization, wanted, fewest)) + "\n")


@sizes.command()
def runs(
    rate: Annotated[float, typer.Option(help="records/s")],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN", help="as in `show` (default: the newest of each mode)", show_default=False),
    ] = None,
    record_bytes: Annotated[
        float | None, typer.Option("--bytes", help="of a record (default: as measured)", show_default=False)
    ] = None,
    p99: Annotated[str | None, typer.Option(help="at most, as 500ms or 1s", show_default=False)] = None,
    queries: Annotated[str, typer.Option(help="answered by an index: all, none, or how many")] = "none",
    headroom: Annotated[float, typer.Option(help="share of the rate that stays free")] = 0.3,
    keep_days: Annotated[float | None, typer.Option(help="days that records are kept", show_default=False)] = None,
    workers_may_fail: Annotated[int, typer.Option(help="workers to have more")] = 1,
    cores_per_worker: Annotated[float, typer.Option(help="of a worker's machine")] = 2.0,
    as_json: AsJson = False,
    results: Results = RESULTS,
) -> None:
    """Which pipelines meet a requirement, with tasks, workers, connections, cores, disk and network. Exit code 3 if
    none does and one is not decided, 1 if all fail."""
    asked = Asked(
        rate=rate,
        record_bytes=record_bytes,
        p99_ms=None if p99 is None else p99_of(p99),
        queries=queries_of(queries),
        headroom=headroom,
        keep_days=keep_days,
        may_fail=workers_may_fail,
        cores_per_worker=cores_per_worker,
    )
    kept = stored_runs(names or [], results)
    found = find_sizes(measured(kept, record_bytes), asked)
    used = [f"{each.summary.run}{'' if each.summary.complete else ' (not finished)'}" for each in kept]
    if as_json:
        write(json.dumps(plain(found, asked, used), indent=2, ensure_ascii=False) + "\n")
    else:
        write("\n".join(lines(found, asked, used)) + "\n")
    states = {each.state for each in found}
    if "qualifies" not in states:
        raise typer.Exit(EXIT_INCONCLUSIVE if "not decided" in states else EXIT_CHECK_FAILED)
