"""The markers of tests by their files: `newest` and `newest_only`.

`newest` is for tests that depend on the release of jax, which also run with the newest one. `newest_only` is for those
that test releases of jax more than this project's code, and run once for each change, in `nox -s tests_newest`: the
programs of tests/compat, whose goldens the matrix replays in other releases, and studies of what jax documents.
"""

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEWEST = (
    *(f"tests/{name}/" for name in ("compat", "export")),
    *(f"tests/plugin/test_{name}.py" for name in ("arguments", "changed_exports", "exporting_guide", "first_replay")),
    *(f"tests/plugin/test_{name}.py" for name in ("hash_seeds", "life", "recorded_meshes", "set_elsewhere")),
    "tests/plugin/test_written_noise.py",
    *(f"tests/readers/test_{name}.py" for name in ("ahead", "figures", "moved_inside", "worker_checks")),
    *(f"tests/features/convert/test_{name}.py" for name in ("convert_command", "fixed_by_conversion", "for_runtimes")),
    "tests/features/convert/test_modules.py",
    "tests/features/adopt/test_adding_goldens.py",
    "tests/features/why/test_explained_runtimes.py",
    "tests/artifact/test_installed_jax.py",
    "tests/goldens/test_adopted_meshes.py::test_an_adopted_artifact_for_four_devices_runs",
    "tests/goldens/test_arrays.py::test_these_tests_cover_every_dtype_of_jax",
    "tests/knowledge/test_measured.py::test_approx_max_k_is_forecast_as_it_was_measured",
    "tests/knowledge/test_measured.py::test_the_forecast_doubts_a_composite_of_a_symbolic_size",
    "tests/knowledge/test_measured.py::test_the_forecast_knows_which_products_of_4_bits_compile",
    "tests/matrix/test_replay.py::test_a_refusal_counts_only_in_releases_known_to_give_it",
    "tests/matrix/test_replay.py::test_an_outcome_names_openblas_kernels_and_cpython",
    "tests/matrix/test_replay.py::test_cells_of_a_platform_without_its_device_are_not_run",
    "tests/matrix/test_replay.py::test_the_message_on_different_numbers_has_index_and_error",
    "tests/matrix/test_replay.py::test_goldens_pass_in_the_interpreter_that_wrote_them",
)
"""The beginnings of the ids of tests: folders, files, and single tests of files that test something else otherwise."""
ANY_RELEASE = (
    "tests/plugin/test_changed_exports.py::test_a_change_under_all_hash_seeds_suggests_trying_more_seeds",
    "tests/plugin/test_changed_exports.py::test_a_check_finds_unrecorded_dependence_on_the_hash_seed",
    "tests/plugin/test_changed_exports.py::test_dependence_on_the_hash_seed_is_recorded",
    "tests/plugin/test_changed_exports.py::test_noise_later_skips_the_second_export",
    "tests/plugin/test_changed_exports.py::test_random_constants_are_named_when_written_and_when_they_differ",
    "tests/plugin/test_changed_exports.py::test_seed_dependent_goldens_compare_only_outputs",
    "tests/plugin/test_changed_exports.py::test_under_warn_a_changed_export_passes_and_is_in_the_summary",
    "tests/plugin/test_set_elsewhere.py::test_a_test_that_depends_on_another_has_no_second_export",
    "tests/plugin/test_set_elsewhere.py::test_second_exports_find_the_fixtures_of_a_conftest",
    "tests/readers/test_ahead.py::test_the_reason_why_spare_processes_stop_is_reported_once",
)
"""Tests in files of `NEWEST` that do not depend on the release of jax."""
WITHOUT_NOISE = "[without noise"
"""The parameter of tests that measure no noise. With noise they are marked `matrix`: tests_newest runs those."""
PROGRAMS = "tests/compat/"
STUDIES = (
    "studies/tests/custom_calls/test_scale.py",
    *(f"studies/tests/export_docs/test_{name}" for name in ("apart", "documented_", "public_api")),
    *(f"studies/tests/test_{name}.py" for name in ("calling_conventions", "jax_goldens")),
)
PAGES = "tests/docs/test_printed.py"
"""The tests that have the mark which a comment of their page names."""
ONLY_THESE = re.compile(r"(\(matrix or newest\)|matrix|newest)( and not \w+)*")
"""Expressions of `-m` that choose only tests with one of the two marks."""


@functools.cache
def may_have_them(path: Path) -> bool:
    """Return whether a file can have a test that is marked `matrix` or `newest`: it is listed, or names the mark."""
    places = tuple(f"{ROOT}/{place.partition('::')[0]}" for place in (*NEWEST, *STUDIES, PAGES))
    return str(path).startswith(places) or "mark.matrix" in path.read_text(encoding="utf-8")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test that `-m` chooses, since collecting takes ten seconds in each process of xdist."""
    if collection_path.suffix != ".py" or not ONLY_THESE.fullmatch(config.option.markexpr):
        return None
    return None if may_have_them(collection_path) else True


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the markers.

    Raises:
        pytest.UsageError: `-m matrix` would not find a test, since its file does not name the mark.
    """
    for item in items:
        if not may_have_them(item.path) and item.get_closest_marker("matrix"):
            raise pytest.UsageError(f"{item.nodeid}: expected pytest.mark.matrix in the file of a test with that mark")
        is_study = item.nodeid.startswith(STUDIES)
        depends = item.nodeid.startswith(NEWEST) and not item.nodeid.startswith(ANY_RELEASE)
        if is_study or (depends and WITHOUT_NOISE not in item.nodeid):
            item.add_marker("newest")
        if is_study or (item.nodeid.startswith(PROGRAMS) and item.get_closest_marker("export_compat")):
            item.add_marker("newest_only")
