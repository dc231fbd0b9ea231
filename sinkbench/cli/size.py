"""The command `size`: Kafka's brokers, or pipelines from stored runs."""

import json
import math
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sinkbench.cli.options import commands, write
from sinkbench.errors import SizeError
from sinkbench.size import kafka as formula

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
