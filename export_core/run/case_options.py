"""The options of an export and of a comparison: from the keywords, else from the run, else from the policy."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from export_core.base.tolerances import WITHOUT_TOLERANCE
from export_core.export.case import ExportOptions
from export_core.goldens import Comparison
from export_core.policy import Policy


def export_options(
    keywords: Mapping[str, Any], policy: Policy, platforms: tuple[str, ...] | None = None
) -> ExportOptions:
    """Return the export options of a case.

    A value in `keywords` comes first; `platforms` falls back to the argument, then to the policy.
    """
    # There are more keywords, such as tolerances, which do not change what is exported.
    names = {field.name for field in fields(ExportOptions)}
    given = {name: value for name, value in keywords.items() if name in names and value is not None}
    platforms = given.get("platforms") or platforms or (tuple(policy.platforms) if policy.platforms else None)
    allow = {**policy.allow, **given.get("allow", {})}
    return ExportOptions(**{**given, "platforms": platforms, "allow": allow})


def comparison(
    keywords: Mapping[str, Any], policy: Policy, rtol: float | None = None, atol: float | None = None
) -> Comparison:
    """Return the comparator and its tolerances.

    Each tolerance comes from `keywords`, else from the argument `rtol` or `atol`, else from the policy. If the
    keywords set `ulp`, only the tolerances in the keywords count. The comparators `exact` and `shape` have none.
    """
    compare, ulp = keywords.get("compare") or "allclose", keywords.get("ulp")
    if compare in WITHOUT_TOLERANCE:
        return Comparison(compare)
    relative: list[Any] = [keywords.get("rtol"), rtol, policy.rtol]
    absolute: list[Any] = [keywords.get("atol"), atol, policy.atol]
    if ulp is not None:  # those of the project must not widen a tolerance in units of the last place
        relative, absolute = relative[:1], absolute[:1]
    rtol, atol = (next((value for value in given if value is not None), None) for given in (relative, absolute))
    return Comparison(compare, rtol, atol, ulp)
