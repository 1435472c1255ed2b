"""Fixtures with the scale library of each day, and with exports by the lowering of each day."""

from collections.abc import Callable
from pathlib import Path

import pytest

from studies.custom_calls.building import COMPILER, HERE, build_libraries

Libraries = dict[str, Path]


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Libraries:
    """The path of the scale library on each day: D-1, D, RELEASE+180."""
    if COMPILER is None:
        pytest.skip("g++ is missing, which compiles the FFI target")
    import jax.ffi

    return build_libraries(tmp_path_factory.mktemp("libraries"), jax.ffi.include_dir())


@pytest.fixture(scope="session")
def export(libraries: Libraries) -> Callable[..., object]:
    """A function that exports `scale` with the lowering of a day, such as ``export("D", ignore_forward=True)``."""
    import jax
    import numpy as np

    from export_core.export.case import Case, ExportOptions
    from export_core.export.produce import produce
    from export_core.releases import load_calendar

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCALE_LIBRARY", str(libraries["D"]))
        patch.syspath_prepend(HERE)
        import scale
        import scale_targets  # noqa: F401 - registers

    def export(day: str, *, ignore_forward: bool = False) -> object:
        scale.use_lowering(day)
        function = jax.jit(lambda x: scale.scale(x, 2.5))
        name = f"{day}.now" if ignore_forward else day
        allow = dict.fromkeys(("my_scale_v1", "my_scale_v2"), "compiled by this test")
        x = np.arange(4, dtype=np.float32)
        asked = ExportOptions(allow=allow, ignore_forward_compatibility=ignore_forward, register=("scale_targets",))
        case = Case(name, "tests/test_scale.py::test", None, function, (x,), {}, asked)
        return produce(case, load_calendar(), reproducible=False)

    return export
