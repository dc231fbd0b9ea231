"""Checks the settings that a plan applies to its sinks' services during a trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sinkbench.analysis.settable import Settable
from sinkbench.errors import PlanError
from sinkbench.plan.faults import OF_SERVICES, PROMOTE
from sinkbench.plan.plan import FaultsPlan, Plan
from sinkbench.suggest import did_you_mean
from sinkbench.yamlfile import shown


def check_settings(
    plan: Plan, settable: Mapping[str, Mapping[str, Settable]], others_stack: Callable[[], str | None] = lambda: None
) -> None:
    """Raises PlanError if a sink does not support the plan's settings, or they do not survive its faults.

    `settable` lists settings by sink and service; `others_stack` returns the name of an external stack or None.
    """
    for index, entry in enumerate(plan.pipelines):
        services = settable.get(entry.sink, {})
        for service, given in entry.settings.items():
            where = plan.where("pipelines", index, "settings", service)
            if not services:
                raise PlanError(f"{where}: the sink {entry.sink} takes no settings; leave them out")
            if service not in services:
                hint = did_you_mean(service, services)
                raise PlanError(f"{where}: the sink {entry.sink} has no service '{service}' to set{hint}")
            known = services[service]
            for key, value in given.items():
                line = plan.where("pipelines", index, "settings", service, key)
                if key not in known.settings:
                    raise PlanError(f"{line}: {service} has no setting '{key}'{did_you_mean(key, known.settings)}")
                if not known.settings[key].takes(value):
                    wanted = known.settings[key].in_words
                    raise PlanError(f"{line}: {service}'s {key} must be {wanted}, found {shown(value)}")
            if not known.shared and (name := others_stack()) is not None:
                raise PlanError(
                    f"{where}: {service} is not set on stack {name}, which is external; leave"
                    " it out, or race on a stack of sinkbench's own"
                )
            _check_faults(plan, entry.shown_name, service, known, where)


def _check_faults(plan: Plan, label: str, service: str, known: Settable, where: str) -> None:
    """Raises PlanError if a fault of that pipeline restarts the service, which would lose the setting."""
    for fault in plan.faults if isinstance(plan, FaultsPlan) else ():
        # A pooler reads its file again after a promotion.
        begins_anew = fault.what == PROMOTE or (fault.what in OF_SERVICES and fault.target == service)
        if known.lasts or not begins_anew or not fault.applies_to(label):
            continue
        raise PlanError(
            f"{where}: {service} would lose these settings in the fault '{fault.name}'; leave them out, or name other"
            " pipelines in the fault"
        )
