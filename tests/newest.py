"""The markers of tests by their files: `newest` and `corpus`.

`newest` is for tests that depend on the release of jax, which also run with the newest one. `corpus` is for the programs
of tests/compat, each with its golden. They test releases of jax more than this project's code: the newest jax exports
them in `nox -s tests_newest`, and the matrix replays their goldens in other releases.
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
    *(f"studies/tests/{name}/" for name in ("custom_calls", "export_docs")),
    *(f"studies/tests/test_{name}.py" for name in ("calling_conventions", "jax_goldens")),
)
CORPUS = "tests/compat/"


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(NEWEST):
            item.add_marker("newest")
        if item.nodeid.startswith(CORPUS) and item.get_closest_marker("export_compat"):
            item.add_marker("corpus")
