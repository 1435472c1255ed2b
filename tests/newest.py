"""The markers of tests by their files: `newest` and `newest_only`.

`newest` is for tests that depend on the release of jax, which also run with the newest one. `newest_only` is for those
that test releases of jax more than this project's code, and run once for each change, in `nox -s tests_newest`: the
programs of tests/compat, whose goldens the matrix replays in other releases, and studies of what jax documents.
"""

import pytest

NEWEST = (
    *(f"tests/{name}/" for name in ("compat", "export", "features/adopt", "features/convert")),
    *(f"tests/plugin/test_{name}.py" for name in ("arguments", "changed_exports", "exporting_guide", "first_replay")),
    *(f"tests/plugin/test_{name}.py" for name in ("hash_seeds", "life", "nothing_to_compare", "recorded_meshes")),
    *(f"tests/plugin/test_{name}.py" for name in ("set_elsewhere", "written_noise")),
    *(f"tests/readers/test_{name}.py" for name in ("ahead", "figures", "moved_inside", "worker_checks")),
    *(f"tests/goldens/test_{name}.py" for name in ("adopted_meshes", "arrays", "made_inputs")),
    "tests/artifact/test_installed_jax.py",
    "tests/knowledge/test_measured.py",
    "tests/matrix/test_replay.py",
    "tests/features/why/test_explained_runtimes.py",
)
PROGRAMS = "tests/compat/"
STUDIES = (
    "studies/tests/custom_calls/test_scale.py",
    *(f"studies/tests/export_docs/test_{name}" for name in ("apart", "documented_", "public_api")),
    *(f"studies/tests/test_{name}.py" for name in ("calling_conventions", "jax_goldens")),
)


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        is_study = item.nodeid.startswith(STUDIES)
        if is_study or item.nodeid.startswith(NEWEST):
            item.add_marker("newest")
        if is_study or (item.nodeid.startswith(PROGRAMS) and item.get_closest_marker("export_compat")):
            item.add_marker("newest_only")
