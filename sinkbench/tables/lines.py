"""Lines below the tables of a run: the basis of latencies, prices, and results about the records."""

from __future__ import annotations

from sinkbench.analysis.words import milliseconds, times
from sinkbench.metrics.names import cell_name
from sinkbench.results import Audit, LatencyMs, RunSummary


def load_lines(summary: RunSummary) -> list[str]:
    """The basis of each cell's latency under a constant load, and the loads that a search for its capacity offered."""
    lines = []
    for cell in summary.cells:
        for what, latency in (("stored", cell.latency_ms), ("found by a search", cell.searchable_ms)):
            if latency is not None and latency.count:
                lines.append(f"{cell.cell}: due until {what}: {_rests_on(latency)}")
        if cell.search:
            steps = ", ".join(
                f"{step.offered:,.0f} {'again ' if step.confirms else ''}{step.outcome}" for step in cell.search
            )
            lines.append(f"{cell.cell}: the search offered {steps}")
    if any(cell.searchable_ms is not None for cell in summary.cells):
        lines.append("found: until a search finds the record; in a database it is found once it is committed.")
    return lines


def _rests_on(latency: LatencyMs) -> str:
    parts = [f"{latency.count:,} records" + (f", one in {latency.one_in}" if latency.one_in > 1 else "")]
    if latency.max is not None:
        parts.append(f"longest {milliseconds(latency.max)} ms")
    if latency.resolution_ms is not None:
        parts.append(f"known to within {milliseconds(latency.resolution_ms)} ms")
    if latency.negative:
        early = "" if latency.earliest is None else f", by {milliseconds(latency.earliest)} ms at most"
        # One time in 20 is less exact than the resolution.
        wrong = latency.earliest is not None and latency.earliest > 2 * (latency.resolution_ms or 0.0)
        parts.append(
            f"{latency.negative:,} more stored before they were due{early}{', so the clocks disagree' * wrong}"
        )
    if latency.unknown:
        parts.append(f"of {latency.unknown:,} more it is not known")
    return ", ".join(parts)


def price_lines(summary: RunSummary) -> list[str]:
    """The prices used for costs, in a line, and why cells have no cost; empty for a run without prices."""
    prices = summary.prices
    if prices is None:
        return []
    months = "1 month" if prices.kept_months == 1 else f"{prices.kept_months:g} months"
    said = {
        "cores": (prices.core_hour, "a core-hour"),
        "memory": (prices.memory_gb_hour, "a GB-hour of memory"),
        "disk": (prices.disk_gb_month, f"a GB-month of disk, on which records are kept for {months}"),
    }
    given = ", ".join(f"{price:g} {prices.currency} {what}" for price, what in said.values() if price is not None)
    missing = [part for part, (price, _) in said.items() if price is None]
    left_out = f"; {' and '.join(missing)} in no cost" if missing else ""
    lines = [f"Prices: {given}{left_out}."]
    if names := [cell_name(cell, summary) for cell in summary.cells if not cell.cost or cell.cost.per_million is None]:
        why = "the cell did not pass, its rate may not be quoted, its tasks changed, or a figure was not measured"
        lines.append(f"No cost, since {why}: {', '.join(names)}.")
    return lines


def record_lines(summary: RunSummary) -> list[str]:
    """The data check, and for the user's own records their properties and repetitions."""
    facts = summary.records
    lines = [line] if (line := data_check(summary)) else []
    if facts is None:
        return lines
    lines.append(f"Records: {facts.in_words}; sha256 {facts.sha256[:12]}.")
    audits = [cell.audit.produced / (cell.trials - cell.not_audited or 1) for cell in summary.cells if cell.audit]
    rounds = max(audits, default=0.0) / facts.records
    if rounds > 1:
        lines.append(
            f"A trial needs more records than there are: they were repeated up to {times(rounds)} times. Compression"
            " and the page cache then look better than they are, and ids repeat."
        )
    return lines


def data_check(summary: RunSummary) -> str:
    """What the audits of all trials found, in a line; empty if none was audited."""
    audits = [cell.audit for cell in summary.cells if cell.audit is not None]
    if not audits:
        return ""

    def total(name: str) -> int:
        return sum(getattr(audit, name) or 0 for audit in audits)

    always = {"produced": "sent", "stored": "stored", "lost": "lost", "duplicates": "duplicated"}
    found = [f"{total(name):,} {word}" for name, word in always.items()]
    others = [name for name in Audit.model_fields if name not in (*always, "compared", "checked") and total(name)]
    found += [f"{total(name):,} {name.replace('_', ' ')}" for name in others]
    checked = f"; {total('checked'):,} contents verified" if total("checked") else "; contents not verified"
    unaudited = sum(cell.not_audited for cell in summary.cells)
    missing = f"; {unaudited} of {sum(cell.trials for cell in summary.cells)} trials not audited" if unaudited else ""
    return f"Data check: {', '.join(found)}{checked}{missing}."
