"""Settings of jax and fixtures from other files: a second export has them, or is ignored because it lacks settings."""

import pytest
from projects import Project, Projects

SETS = """
import jax

jax.config.update("jax_default_matmul_precision", "highest")
"""

PRODUCT = """
import jax
import numpy as np
import pytest

@pytest.mark.export_compat
def test_product(export_golden):
    export_golden(jax.jit(lambda x: x @ x), np.eye(3, dtype=np.float32))
"""

AT_RUN = """

def test_another():
    import jax

    jax.config.update("jax_default_matmul_precision", "highest")
"""


NEEDS_ANOTHER = """
RAN = []

def test_another():
    RAN.append(1)
""" + PRODUCT.replace("    export_golden", "    assert RAN\n    export_golden")


@pytest.fixture(scope="module")
def project(projects: Projects) -> Project:
    project = projects(test_a=SETS, test_b=PRODUCT, inner__test_first=PRODUCT)
    # The second process does not use this ini file.
    (project.folder / "inner" / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    done = project.pytest("--update-goldens", twice=True)
    assert done.code == 0, done.text
    assert "2 goldens new" in done.text
    assert "exported only once" not in done.text
    return project


@pytest.mark.parametrize("case", ["test_b.test_product", "inner.test_first.test_product"])
def test_the_second_export_has_jax_settings_of_other_test_files(project, case):
    manifest = project.manifest(case)
    assert manifest["flags"]["jax_default_matmul_precision"] == "highest"
    assert "reproducible" not in manifest


def test_running_without_the_file_that_configures_jax_fails(project):
    done = project.pytest("test_b.py")
    assert "export changed" in done["test_product"].text
    assert "jax_default_matmul_precision: golden highest; now None" in done["test_product"].text


def test_a_second_export_under_other_settings_is_not_compared(projects):
    project = projects(test_a=AT_RUN, test_b=PRODUCT)
    done = project.pytest("--update-goldens", twice=True)
    assert "1 golden exported only once: test_b.test_product. The next run of pytest shows whether" in done.text
    assert "in a second process, jax_default_matmul_precision differs, which another test or a fixture" in done.text
    assert "reproducible" not in project.manifest("test_b.test_product")


def test_a_test_that_depends_on_another_has_no_second_export(projects):
    done = projects(test_b=NEEDS_ANOTHER).pytest("--update-goldens", twice=True)
    assert "1 golden exported only once: test_b.test_product. " in done.text
    assert "in a second process, which runs each test alone, these tests exported nothing: run one alone" in done.text


FIXTURES = """
import numpy as np
import pytest

@pytest.fixture
def ones():
    return np.ones(3, np.float32)

@pytest.fixture(scope="package")
def twos():
    return np.full(3, 2, np.float32)
"""

TESTS = """
import jax
import numpy as np
import pytest

pytestmark = pytest.mark.export_compat

@pytest.fixture
def threes(ones, twos):
    return ones + twos

def test_first(export_golden, threes):
    export_golden(jax.jit(lambda x: x), threes)

class TestInner:
    def test_second(self, export_golden, ones, twos, threes):
        export_golden(jax.jit(lambda x: -x), threes)
"""


def test_second_exports_find_the_fixtures_of_a_conftest(projects):
    files = {"inner__conftest": FIXTURES, "inner__test_a": TESTS, "inner__test_b": TESTS}
    done = projects(**files).pytest("--update-goldens", twice=True)
    assert "4 goldens new" in done.text
    assert "exported only once" not in done.text
