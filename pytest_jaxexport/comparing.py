"""The comparison of a marked test's goldens in this run: by its marker and the options, not by what goldens recorded.

So a tolerance can be corrected in the test, and no golden has to be written again. The rules of the policy come last.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from export_core.base.tolerances import Sources, takes_tolerances
from export_core.goldens import Comparison, Golden
from export_core.goldens.store import ComparedAs, ComparedGolden
from export_core.matrix.comparisons import under_rules
from export_core.numbers.comparison_of_call import comparison_of
from export_core.run import case_options
from pytest_jaxexport.marker import Marked
from pytest_jaxexport.settings import Settings


def comparison(marked: Marked, settings: Settings) -> Comparison:
    """Return the comparator and the tolerances of a test, from its marker, the options of the run and the policy."""
    return case_options.comparison(marked, settings.policy, settings.rtol, settings.atol)


def _sources(marked: Marked, settings: Settings) -> Sources:
    """Return the source of each part of a test's comparison, such as "marker", by which messages name it."""
    compared = comparison(marked, settings)
    origins = {"compare": "marker"}
    for name in ("rtol", "atol", "ulp"):
        if marked.get(name) is not None:
            origins[name] = "marker"
        elif getattr(compared, name) is not None:  # `ulp` comes from the marker alone
            of_run = getattr(settings, name) is not None
            origins[name] = f"export_{name}" if of_run else f"{name} of the policy"
    return origins


def marked_now(golden: Golden, marked: Marked, settings: Settings) -> ComparedGolden:
    """Return a golden with the comparison of its test: that of the marker and of this run's options."""
    allow = golden.manifest.options.allow
    return golden.compared(ComparedAs(comparison(marked, settings), allow, _sources(marked, settings)))


def correction(goldens: Sequence[Golden], marked: Marked, settings: Settings) -> dict[str, Any] | None:
    """Return the policy rule by which `jaxexport matrix` would compare as this run does; None if it does already.

    A matrix knows no markers, only the comparison in each golden and the rules of the policy. Tolerances that the
    comparator does not use are left out of the rule, since the policy refuses them.
    """
    numbers = settings.policy.numbers
    for golden in goldens:
        now = under_rules(marked_now(golden, marked, settings), numbers)
        if _comparisons_of_calls(now) != _comparisons_of_calls(under_rules(golden, numbers)):
            fields = msgspec.to_builtins(_as_used(comparison(marked, settings))).items()
            return {name: value for name, value in fields if value not in (None, Comparison().compare)}
    return None


def _comparisons_of_calls(golden: Golden) -> list[Comparison]:
    """Return the comparison of the outputs of each call of a golden."""
    return [_as_used(comparison_of(check, golden.compared_as.comparison)) for check in golden.calls.values()]


def _as_used(how: Comparison) -> Comparison:
    """Return the same comparison without tolerances that its comparator ignores."""
    return how if takes_tolerances(how.compare) else Comparison(how.compare)
