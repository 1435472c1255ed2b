"""The sessions of this project: `nox --list` shows them."""

from __future__ import annotations

import os
import shutil
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import nox

from export_core.readers.build import PREFERRED, find_python, uv_command
from export_core.readers.errors import EnvironmentFailed
from pytest_jaxexport.nox_sessions import register
from tools.wheel import wheel_folder

nox.options.sessions = ["lint", "typecheck", "tests"]
nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True

register()

SHARED = {"PYTHONPATH": "tests/artifact"}
"""The variables of studies that use modules of tests/artifact."""
EXAMPLES = [path.parent for path in sorted(Path(__file__).parent.glob("examples/*/pyproject.toml"))]


def newest_python() -> str | None:
    """Return a CPython for which the newest jax has wheels; None, which stands for that of nox, if there is none."""
    try:
        return find_python(PREFERRED, uv_command())
    except EnvironmentFailed:
        return None


FAST = ("-m", "not matrix and not browser and not weekly and not newest_only")
"""The tests that `nox -s tests` chooses: pytest's own choice here, without those that only tests_newest runs."""


@nox.session
def tests(session: nox.Session) -> None:
    """Run the fast tests. -- -m matrix for those that need other jaxlib releases."""
    run_tests(session, () if names_tests(session.posargs) else FAST)


def names_tests(words: Sequence[str]) -> bool:
    """Return whether arguments of pytest name a file, a folder or a test. An `-m` among them wins anyway."""
    return any(Path(word.partition("::")[0]).exists() for word in words)


def run_tests(session: nox.Session, chosen: Sequence[str] = ()) -> None:
    """Install what the tests need, and run pytest with `chosen` and the arguments of the session."""
    groups = ("tests", "schema", "engines", "workflows")
    session.install("-e", ".[nox]", *(word for group in groups for word in ("--group", group)))
    # Set to anything else, each of the hundreds of processes would compile the bytecode of jax anew.
    session.env["PYTHONDONTWRITEBYTECODE"] = ""
    # Nothing here multiplies large matrices, and a thread for each core takes each of them a third of NumPy's import.
    session.env["OPENBLAS_NUM_THREADS"] = "1"
    # A process for each core: one more, for when tests wait, would collect all tests once more. In their order: files
    # with the fewest tests, which would come last otherwise, are among the slowest.
    processes = str(os.cpu_count() or 1)
    session.run("pytest", "-n", processes, "--dist", "loadfile", "--no-loadscope-reorder", *chosen, *session.posargs)


# The newest jax needs a newer CPython than the oldest one that this package supports.
@nox.session(python=newest_python(), default=False)
def tests_newest(session: nox.Session) -> None:
    """Run the fast tests with CPython 3.12 and the newest jax, and those marked newest_only, which they leave out."""
    run_tests(session)


@nox.session(python=newest_python(), default=False)
def weekly(session: nox.Session) -> None:
    """Run the tests that install what no other test does, or run a whole study: each week, not for each change."""
    session.install("-e", ".[nox]", "--group", "tests")
    session.run("pytest", "-m", "weekly", *session.posargs)


@nox.session(default=False)
def browser(session: nox.Session) -> None:
    """Open report, site, tutorial in Chromium: `apt-get install chromium-headless-shell` or `playwright install`."""
    session.install("-e", ".[nox]", "--group", "tests", "--group", "browser", "--group", "docs")
    session.run("pytest", "-m", "browser", "tests/report", "tests/features", "tests/docs", *session.posargs)


@nox.session(default=False)
def tutorial(session: nox.Session) -> None:
    """Time the tutorial in a bare Debian: needs root and debootstrap. -- --docs docs/tutorial/index.md renews it."""
    session.install("-e", ".")
    session.run("python", "-m", "tools.bare_tutorial", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the site in docs/_build/html; warnings are errors. -- -b linkcheck opens every link (network)."""
    session.install("-e", ".", "--group", "docs")
    builder = () if "-b" in session.posargs else ("-b", "html")
    session.run("sphinx-build", "-W", "--keep-going", "-q", *builder, *session.posargs, "docs", "docs/_build/html")


@nox.session
def lint(session: nox.Session) -> None:
    """Check the code with ruff: its rules and its format."""
    session.install("--group", "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session(default=False)
def prose(session: nox.Session) -> None:
    """Check spelling, how hard the docs are to read, and the docstrings and names of the code."""
    session.install("--group", "prose")
    session.run("codespell")
    session.run("typos")
    session.run("python", "-m", "tools.readability", *session.posargs)
    session.run("python", "-m", "tools.docstrings")


@nox.session
def typecheck(session: nox.Session) -> None:
    """Check the types with mypy, strictly."""
    session.install("-e", ".[nox]", "--group", "typecheck")
    session.run("mypy")


@nox.session(python=newest_python(), default=False, reuse_venv=False)
@nox.parametrize("folder", EXAMPLES, ids=[folder.name for folder in EXAMPLES])
def examples(session: nox.Session, folder: Path) -> None:
    """Run the commands of an example's README with the wheel, in a new environment. -- --renew writes their output."""
    scratch = Path(session.create_tmp()).resolve()
    shutil.rmtree(scratch)
    (wheel,) = wheel_folder().glob("*.whl")
    copy = shutil.copytree(folder, scratch / folder.name)
    project = tomllib.loads((copy / "pyproject.toml").read_text(encoding="utf-8"))
    words = ["--editable", "."] if "build-system" in project else []
    words += ["--group", "test"] if "test" in project.get("dependency-groups", {}) else []
    with session.chdir(copy):
        session.install(str(wheel), *words)
    session.run("python", "-m", "tools.examples", f"examples/{folder.name}", str(copy), *session.posargs)


@nox.session(python=newest_python(), default=False)
def bench(session: nox.Session) -> None:
    """Measure all budgets side by side in one run. -- --docs docs/explanation/performance.md renews the page."""
    session.install("-e", ".", "--group", "tests", "--group", "browser")
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session(python=newest_python(), default=False)
def large_matrix(session: nox.Session) -> None:
    """Run 12 writers, 20 readers and all cases in one matrix, then the same matrix again. -- --goldens DIR."""
    session.install("-e", ".", "--group", "tests")
    session.run("python", "-m", "benchmarks.large", *session.posargs)


@nox.session(python=newest_python(), default=False)
def numbers(session: nox.Session) -> None:
    """Count false alarms and missed errors of the rules for numbers. -- --docs PAGE renews numbers-measured.md."""
    session.install("-e", ".", "--group", "tests")
    session.run("python", "-m", "studies.numbers", *session.posargs)


@nox.session(python=newest_python(), default=False)
def mutations(session: nox.Session) -> None:
    """Mutate the modules that decide: fast tests must notice it. -- --sample 20 tries more of each module."""
    session.install("-e", ".", "--group", "tests", "--group", "mutations")
    session.run("python", "-m", "tools.mutations", *session.posargs)


@nox.session(python=newest_python(), default=False)
def statements(session: nox.Session) -> None:
    """Break each statement of JAX's documents in this program: its test must fail. -- --rows 1-20 tries some."""
    session.install("-e", ".", "--group", "tests")
    session.run("python", "-m", "tools.statements_check", *session.posargs)


@nox.session(default=False)
def changelog(session: nox.Session) -> None:
    """Collect changes/ into CHANGELOG.md, for the version of pyproject.toml. -- --draft shows it only."""
    session.install("--group", "changelog")
    version = nox.project.load_toml("pyproject.toml")["project"]["version"]
    session.run("towncrier", "build", "--version", version, *session.posargs)


@nox.session(default=False)
def package(session: nox.Session) -> None:
    """Build sdist and wheel into dist/, check both, install the wheel, and run some tests of the sdist."""
    shutil.rmtree("dist", ignore_errors=True)
    session.install("--group", "package")
    session.run(uv_command(), "build", "--quiet", "--out-dir", "dist", external=True)  # the wheel from the sdist
    (sdist,), (wheel,) = Path("dist").glob("*.tar.gz"), Path("dist").glob("*.whl")
    session.run("twine", "check", "--strict", str(sdist), str(wheel))
    session.run("check-wheel-contents", str(wheel))
    # The authors have no common address; before the first release, the project has none either: tools/release_day.py.
    has_urls = "urls" in nox.project.load_toml("pyproject.toml")["project"]
    session.run("pyroma", "--min", "10", "--skip-tests", "AuthorEmail" if has_urls else "AuthorEmail,Url", str(sdist))
    with tempfile.TemporaryDirectory() as cache:  # the hooks, installed from this repository as pre-commit does
        # The hook imports a part of what pip would compile, which takes half of the time of installing it.
        variables = {"PRE_COMMIT_HOME": cache, "PIP_COMPILE": "no"}
        session.run("pre-commit", "try-repo", ".", "jaxexport-verify-goldens", "--all-files", env=variables)
    session.install("--reinstall-package", "pytest-jaxexport", str(wheel), "--group", "tests")
    session.run("jaxexport", "--version")
    shutil.unpack_archive(sdist, session.create_tmp())
    with session.chdir(Path(session.create_tmp()) / sdist.name.removesuffix(".tar.gz")):
        session.run(
            "python",
            "-m",
            "pytest",
            "-q",
            "tests/test_package.py",
            "tests/test_layers.py",
            "tests/goldens/test_rename.py",
        )


@nox.session(python=newest_python(), default=False)
def fuzz(session: nox.Session) -> None:
    """Read damaged artifacts for a minute: only an ArtifactError may be raised. -- --seconds 3600 for an hour."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.artifact.fuzz", *session.posargs, env=SHARED)


@nox.session(python=newest_python(), default=False)
def reader_check(session: nox.Session) -> None:
    """Compare what the artifact reader and 20 releases say of the same artifacts. -- --releases 3 is quick."""
    session.install("-e", ".")
    session.install("--upgrade", "jax", "jaxlib")  # for the goldens in the wheel of jax
    session.run("python", "-m", "studies.artifact.reader_check", *session.posargs, env=SHARED)


@nox.session(python=newest_python(), default=False)
def audit_check(session: nox.Session) -> None:
    """Audit mutants for an hour: the audit must name what four releases find, or refuse. -- --mutants 4000 is quick."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.artifact.audit_check", *session.posargs, env=SHARED)


@nox.session(python=newest_python(), default=False)
def forecast_check(session: nox.Session) -> None:
    """Compare the forecast "this reader loads it" with real loading in 22 releases, and print the confusion table."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.artifact.forecast_check", *session.posargs)


@nox.session(python=newest_python(), default=False)
def knowledge(session: nox.Session) -> None:
    """Check that the knowledge base is still true: each entry in its first and last release. Each week."""
    session.install("-e", ".")
    session.run("python", "-m", "tools.forecast_truth")
    session.run("python", "-m", "tools.knowledge_check", *session.posargs)


@nox.session(python=newest_python(), default=False)
def convert_check(session: nox.Session) -> None:
    """Convert what fails of 13 writers in 8 readers. -- --docs docs/explanation/conversion.md: the page."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.conversion.convert_check", *session.posargs)


@nox.session(python=newest_python(), default=False)
def runtimes(session: nox.Session) -> None:
    """Replay the goldens in TensorFlow, IREE, LiteRT, PJRT and the interpreter; renews docs/explanation/runtimes.md."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.runtimes.session", *session.posargs)


@nox.session(python=newest_python(), default=False)
def operations(session: nox.Session) -> None:
    """Run each operation with each dtype in LiteRT and IREE: forecasts rest on what worked."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.runtimes.operations")


@nox.session(python=newest_python(), default=False)
def custom_calls(session: nox.Session) -> None:
    """Replay two versions of a custom call in five releases, for docs/how-to/change-a-custom-call.md."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.custom_calls.replays", *session.posargs)


@nox.session(python=newest_python(), default=False)
def why(session: nox.Session) -> None:
    """Bisect, reduce and bundle ten real breaks. -- --docs docs/evidence/ten-breaks.md renews the page."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.why.ten_breaks", *session.posargs)


@nox.session(python=newest_python(), default=False)
def atlas(session: nox.Session) -> None:
    """Replay the corpus by many writers in every reader since 0.4.30. -- --docs docs/atlas: data, page, tables."""
    session.install("-e", ".[dask]")
    session.run("python", "-m", "studies.atlas.session", *session.posargs)


@nox.session(python=newest_python(), default=False)
def every_release(session: nox.Session) -> None:
    """Tabulate every release since 0.4.24 as writer and as reader. -- --writers V,V --readers V,V for some of them."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.every_release.cross", *session.posargs)


@nox.session(python=newest_python(), default=False)
def libraries(session: nox.Session) -> None:
    """Read what 16 libraries export where they are not installed. -- --docs docs/reference/libraries.md: the page."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.libraries.libraries_table", *session.posargs)


@nox.session(python=newest_python(), default=False)
def jax_goldens(session: nox.Session) -> None:
    """Convert JAX's own goldens into goldens of this project. -- 0.12.0.1 --goldens DIR: of that release."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.from_jax.jax_goldens", *session.posargs)


@nox.session(python=newest_python(), default=False)
def from_jax(session: nox.Session) -> None:
    """Test JAX's own goldens by JAX's tests and by ours. -- --docs docs/evidence/agreement-with-jax.md: page."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.from_jax.agreement", *session.posargs)


@nox.session(python=newest_python(), default=False)
def regressions(session: nox.Session) -> None:
    """Replay programs of closed issues by five writers in 23 readers; renews the page. -- --goldens DIR stores them."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.corpus.regressions_table", *session.posargs)


@nox.session(python=newest_python(), default=False)
def negative(session: nox.Session) -> None:
    """Ask jaxexport and five releases of jax about artifacts with one thing wrong; renews data and page."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.corpus.negative_table", *session.posargs, env=SHARED)


@nox.session(python=newest_python(), default=False)
def harnesses(session: nox.Session) -> None:
    """Write and replay JAX's own harnesses in some releases. -- --sample N --writers V,V --readers V,V."""
    session.install("-e", ".")
    session.run("python", "-m", "studies.corpus.harness_session", *session.posargs)


@nox.session(python=newest_python(), default=False)
def vhlo_tables(session: nox.Session) -> None:
    """Check the VHLO tables against the newest jaxlib. -- --renew adds operations; -- FOLDER for another jaxlib."""
    session.install("-e", ".")
    # Environments are reused: without --upgrade this would stay the newest jaxlib of the first time.
    session.install("--upgrade", "jax", "jaxlib")
    session.run("python", "-m", "tools.vhlo_tables", *session.posargs)
