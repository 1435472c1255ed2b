"""The marker ``@pytest.mark.export_compat(...)``: its keywords, and the names of a marked test in its goldens."""

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

NAME = "export_compat"

Keyword = tuple[str, str, str]  # The default, the meaning and an example, as `pytest --markers` and pydoc show them.

Marked = Mapping[str, Any]
"""The value of every keyword of the marker; None for a keyword that no marker of the test has. `entries` are entries of
policy keys of features, which some keywords give."""

KEYWORDS: dict[str, Keyword] = {
    "platforms": (
        "None",
        "list of cpu, cuda, rocm, tpu to export for; default: the platform of this process",
        "['cpu', 'cuda']",
    ),
    "vjp_order": ("0", "how many orders of derivatives to serialize; each is checked against jax.vjp", "1"),
    "rtol": (
        "None",
        "relative tolerance of floating-point outputs, a number or {dtype: number}; default: the noise that the "
        "golden's writer measured",
        "{'float32': 1e-5}",
    ),
    "atol": ("None", "absolute tolerance, a number or {dtype: number}; default: as for rtol", "1e-8"),
    "ulp": (
        "None",
        "tolerance in units in the last place, a number or {dtype: number}; can be given without rtol and atol",
        "4",
    ),
    "compare": (
        "'allclose'",
        "allclose, exact (every bit), shape, eigh, eig, svd, qr, lu, schur, or your own 'module:function'",
        "'exact'",
    ),
    "allow": (
        "None",
        "{custom-call target: reason} for targets outside JAX's stable list",
        "{'my_target': 'our own library keeps it'}",
    ),
    "disabled_checks": (
        "None",
        "{'platform', 'ALL' or a custom-call target: reason}, safety checks that jax.export leaves out, also "
        "'shape_assertions' where jax is older than 0.4.29; the audit still requires that every target is allowed",
        "{'platform': 'the same module runs on both'}",
    ),
    "changed_module": (
        "None",
        "'fail' or 'warn', for an export that has changed, other than in locations and names, although its outputs "
        "have not; with 'warn' the test passes, and the summary says so; default: the policy's",
        "'warn'",
    ),
    "symbolic_shapes": (
        "None",
        "dimensions as jax.export.symbolic_args_specs takes them: one text for all arguments, one or None for each "
        "positional argument but static ones, or by position and name, such as {0: 'b, 4', 'mask': 'b'}",
        "('b, 4', None)",
    ),
    "constraints": ("()", "on these dimensions, such as ('b >= 2',)", "['b >= 2']"),
    "mesh": ("None", "{axis: size} to export for; devices are needed only if jax asks for them", "{'data': 4}"),
    "in_specs": (
        "None",
        "a PartitionSpec, a tree of them, or None for each positional argument but static ones, or by position and "
        "name",
        "(PartitionSpec('data'), None)",
    ),
    "spread_over": (
        "0",
        "for an artifact of one device, also call it with its arguments spread over this number of devices",
        "4",
    ),
    "calling_convention_version": ("None", "one that jax.export supports; default: jax's", "9"),
    "ignore_forward_compatibility": ("False", "export with jax_export_ignore_forward_compatibility", "True"),
    "register": (
        "()",
        "modules that the reader imports first, for your own tree nodes, effects or custom-call targets; the golden "
        "contains a copy",
        "['my_nodes']",
    ),
    "refused_on": ("()", "platforms that it is not exported for, and on which it must be refused", "['cpu']"),
    "nothing_to_compare": (
        "None",
        "a reason to write a golden that has no output, only empty ones or only NaN: it shows little more than that "
        "the artifact runs, and without this reason it is not written",
        "'it only prints'",
    ),
    "constant": (
        "()",
        "leaves, or parts of a tree, that are meant to be constant, unused, infinite or NaN, such as a step counter",
        "[\"result['step']\", \"args[1]['unused']\"]",
    ),
    "without_outputs": (
        "None",
        "a reason to write a golden without outputs, for a function of other platforms that this process cannot run: "
        "readers load, lower and compile it, and compare no numbers",
        "'a Pallas kernel for TPU'",
    ),
}
"""The keywords by name, in the order of the signature."""


def all_keywords() -> dict[str, Keyword]:
    """Return all keywords of the marker, those of features included, which take time to load."""
    from export_core.base.feature import features  # 4 ms, for `pytest --markers` alone

    keywords = dict(KEYWORDS)
    for feature in features().values():
        for name, (meaning, example) in feature.keywords.items():
            keywords[name] = ("None", meaning, example)
    return keywords


def signature(keywords: Mapping[str, Keyword]) -> str:
    """Return the text of `pytest --markers`: the marker's signature, its purpose, and where keywords are explained."""
    given = ", ".join(f"{name}={default}" for name, (default, _, _) in keywords.items())
    return (
        f"{NAME}({given}): export what the test passes to `export_golden` with jax.export, and check it against its "
        f"goldens. `python -m pydoc pytest_jaxexport.{NAME}` explains each keyword and the life of a test."
    )


class MarkerError(Exception):
    """An error for a marker with positional arguments, an unknown keyword, or a value of the wrong kind."""


def own_targets(item: pytest.Item) -> set[str]:
    """Return the custom-call targets that the marker on a test itself names.

    Markers of the test's class and module are left out, since they are for several tests.
    """
    names = {
        name
        for marker in item.own_markers
        if marker.name == NAME
        for keyword in ("allow", "disabled_checks")
        for name in marker.kwargs.get(keyword) or ()
    }
    return names - {"platform", "ALL", "shape_assertions"}  # checks that are not targets


def own_constants(item: pytest.Item) -> tuple[str, ...]:
    """Return the leaves that the marker on a test itself names in `constant`.

    Markers of the test's class and module are left out, since they are for several tests.
    """
    named = (name for marker in item.own_markers if marker.name == NAME for name in marker.kwargs.get("constant") or ())
    return tuple(dict.fromkeys(named))


def locate(item: pytest.Item) -> tuple[str, tuple[str, ...]]:
    """Return the file of a test relative to the root directory, and the names of its classes and of the test.

    pytest's node id would not do, since xdist may add text to it.
    """
    names = tuple(node.name for node in item.listchain() if isinstance(node, (pytest.Class, pytest.Item)))
    return relative_file(item.path, item.config.rootpath), names


def full_name(item: pytest.Item) -> str:
    """Return the name of a test in manifests of goldens: ``tests/test_a.py::TestA::test_f[x]``."""
    path, names = locate(item)
    return "::".join((path, *names))


@functools.cache  # asked for each test that exists, and a file has many
def relative_file(path: Path, folder: Path) -> str:
    """Return the path of a file relative to a folder, even for a file outside of it.

    Goldens have only such paths, since absolute ones belong to a machine.
    """
    return Path(os.path.relpath(path, folder)).as_posix()
