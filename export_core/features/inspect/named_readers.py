"""The readers that `--readers` of inspect, audit and diff names: jaxlibs, ranges of jaxlibs, and other runtimes."""

import re
from pathlib import Path

from packaging.specifiers import SpecifierSet

from export_core.artifact.readers import Reader
from export_core.matrix.selection import WORDS
from export_core.policy import Policy, find_policy
from export_core.policy.load_check import find_reader
from export_core.policy.run_options import comma_separated
from export_core.policy.terms import Terms
from export_core.releases.calendar import about_unknown
from export_core.releases.errors import ReleaseError
from export_core.releases.runtimes import names_runtime, runtime_readers

_RANGE = re.compile(r"((^|,)\s*([<>]=?|[=!~]=)\s*\d[\w.+!]*)+")
"""A range of jaxlibs, such as ``>=0.11,<0.12``."""


def find_readers(text: str, terms: Terms, policy_file: str | None = None) -> list[Reader]:
    """Return the readers in a comma-separated list of jaxlibs (`newest`, ``>=0.11``) and runtimes (``iree>=3.9``).

    Raises:
        ReleaseError: A reader does not exist.
        ExportCompatError: The policy cannot be used.
    """
    readers: list[Reader] = []
    jaxlibs = [release.jaxlib for release in terms.releases]
    for name in comma_separated(text) or (text,):
        if name == "newest" and jaxlibs:
            readers.append(find_reader(jaxlibs[-1], terms))
            continue
        if not name[:1].isalpha():
            is_range = _RANGE.fullmatch(name)
            named = [*SpecifierSet(name).filter(jaxlibs, prereleases=True)] if is_range else [name]
            if not named:
                about = about_unknown("", {release.jaxlib: release.built for release in terms.releases})
                raise ReleaseError(f"--readers: no known jaxlib is in the range {name}.{about}")
            # What a policy says of withdrawn releases matters for a release that `terms` lacks alone.
            calendar = None if {*named} <= {*jaxlibs} else find_policy(Path(), policy_file).calendar()
            readers += [find_reader(version, terms, calendar) for version in named]
            continue
        policy = find_policy(Path(), policy_file)
        if not names_runtime(name):
            _check_is_release(name, policy)
        calendar = policy.calendar()
        readers += [find_reader(release.name, terms, calendar) for release in runtime_readers(name, calendar)]
    return readers


def _check_is_release(name: str, policy: Policy) -> None:
    """Raise `ReleaseError` if a name is a deployment target, or a word that only `jaxexport matrix` accepts."""
    targets = {target.name: target.jaxlib or target.release for target in policy.deployed}
    if name in targets:
        what = f"the deployment target {name!r}: name what it runs, {targets[name]}"
    elif name in WORDS:
        what = f"{name!r}, which only `jaxexport matrix` takes"
    else:
        return
    ask = f"; `jaxexport can-i-deploy FILE --to {name if name in targets else 'all'}` asks by deployment target"
    raise ReleaseError(f"--readers: expected releases, found {what}{ask if targets else ''}.")
