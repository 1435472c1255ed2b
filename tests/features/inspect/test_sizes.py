"""`jaxexport goldens list --sizes`: how large goldens are, by the name of the file."""

from making import manifest, write_golden

from export_core.goldens import GoldenStore
from export_core.goldens.upkeep import MOST, size_lines


def rows(text: str) -> dict[str, list[str]]:
    return {line.split("  ")[0].strip(): line.split()[-3:] for line in text.splitlines()[1:]}


def test_the_largest_file_name_comes_first_and_all_last(jaxexport, tmp_path):
    for jaxlib in ("0.9.2", "0.12.0.1"):
        write_golden(GoldenStore(tmp_path), manifest(jaxlib=jaxlib), {"module.mlir": bytes(60_000)})
    printed = rows(jaxexport("goldens", "list", "--sizes", "--goldens", str(tmp_path)).out)
    assert next(iter(printed)) == "module.mlir"
    assert printed["module.mlir"][:2] == ["2", "120.0"]
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert printed["all"] == ["4", f"{size / 1e3:.1f}", "100%"]


def test_names_beyond_the_largest_share_a_line(tmp_path):
    names = {f"call{number}.inputs.npz": bytes(100 * number) for number in range(1, 10)}
    golden = write_golden(GoldenStore(tmp_path), manifest(), names)
    printed = rows("\n".join(size_lines([golden])))
    others = next(name for name in printed if name.endswith("other names"))
    assert len(printed) == MOST + 2
    assert printed[others][0] == others.split()[0]


def test_without_goldens_there_is_nothing():
    assert list(size_lines([]))[-1].split() == ["all", "0", "0.0", "0%"]
