"""The writer of the releases of other runtimes: `python -m tools.runtime_releases [OPTION ...] [NAME ...]`.

A release that is already in its file in export_core/runtimes stays as it is, except for the versions of CPython for
which it has wheels. A new release is dated by its wheel on the package index, installed, and measured by
tools/runtime_probe.py.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from export_core.artifact.readers import version_pair
from export_core.readers.build import find_python, uv_command
from export_core.releases.calendar import version_key
from export_core.releases.index import IndexFile, RemoteFile, configured_index, index_files
from export_core.releases.runtimes import RuntimeRelease
from export_core.releases.wheels import read_open_wheel

FOLDER = Path("export_core/runtimes")
PROBE = Path(__file__).with_name("runtime_probe.py")
_ALWAYS = ("built", "python", "stablehlo", "convention", "dialects")
PYTHONS = range(10, 16)  # The minor versions of CPython 3 that a worker can run on, and that were released.


@dataclass(frozen=True)
class Source:
    """The packages of a runtime on the package index."""

    packages: tuple[str, ...]  # Packages that have the release's version; the wheel of the first dates the release.
    oldest: str  # The oldest version that is listed.
    beside: tuple[str, ...] = ()  # Packages with versions of their own, installed in their newest version.


SOURCES = {
    "tensorflow": Source(("tensorflow-cpu",), "2.16"),
    "iree": Source(("iree-base-compiler", "iree-base-runtime"), "3.0"),
    "litert": Source(("ai-edge-litert",), "2.1.2", ("litert-converter",)),
}

_ADD = (
    "({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%s = stablehlo.add %a, %b : tensor<f32>\n"
    "stablehlo.return %s : tensor<f32>\n})"
)
_GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
_PRECISE = "result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>"


def _main(kind: str, body: str = "", *, result: str = "", value: str = "%0", more: str = "") -> str:
    signature = f"func.func @main(%x: {kind}{more}) -> {result or kind}"
    return f"{signature} {{\n{body}\nreturn {value if body else '%x'} : {result or kind}\n}}"


def _op(name: str, attributes: str, kind: str, *, region: str = "", result: str = "") -> str:
    return f'%0 = "stablehlo.{name}"(%x) {region} {{{attributes}}} : ({kind}) -> {result or kind}'


_FUTURE = "!stablehlo.future<tensor<2xf32>>"
_TILED = "dense<[1, 0]> : tensor<2xindex>"
# 1.11 and 1.17 brought nothing that shows when an artifact is parsed.
VERSIONS = {
    "0.9": _main("tensor<2xf32>"),
    "0.18": _main("tensor<2x!quant.uniform<i8:f32:0, {0.1, 0.2}>>"),
    "1.2": _main("tensor<2xui2>"),
    "1.4": _main("tensor<2xf32>", _op("tan", "", "tensor<2xf32>")),
    "1.7": _main("tensor<2xf8E4M3>"),
    "1.8": _main("tensor<2xf8E8M0FNU>"),
    "1.9": _main("tensor<2xf32>", _op("exponential", _PRECISE, "tensor<2xf32>")),
    "1.10": _main("tensor<2xf32>", _op("sine", _PRECISE, "tensor<2xf32>")),
    "1.12": _main(
        "!stablehlo.token",
        '%0:2 = "stablehlo.recv"(%x) {channel_handle = #stablehlo.channel_handle<handle = 0, type = 1>, '
        "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} : (!stablehlo.token) -> "
        "(tensor<f32>, !stablehlo.token)",
        value="%0#1",
    ),
    "1.13": _main("memref<2xf32>"),
    "1.14": "func.func private @f(%x: tensor<f32>) -> tensor<f32> {\nreturn %x : tensor<f32>\n}\n"
    + _main(
        "tensor<f32>",
        _op(
            "composite",
            'name = "a.b", decomposition = @f',
            "tensor<f32>",
            region="({\n^bb0(%a: tensor<f32>):\nstablehlo.return %a : tensor<f32>\n})",
        ),
    ),
    "1.15": _main(
        "tensor<2xf32>",
        _op(
            "async_start",
            "",
            "tensor<2xf32>",
            region=f'({{\n^bb0(%y: tensor<2xf32>):\n%1 = "stablehlo.all_reduce"(%y) {_ADD} {{{_GROUPS}}} : '
            "(tensor<2xf32>) -> tensor<2xf32>\nstablehlo.return %1 : tensor<2xf32>\n})",
            result=_FUTURE,
        ),
        result=_FUTURE,
    ),
    "1.16": "func.func private @mesh()\n"
    + _main(
        "tensor<f32>",
        _op(
            "all_reduce",
            "replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = "
            '[#stablehlo.axis_ref<name = "x">]>',
            "tensor<f32>",
            region=_ADD,
        ),
    ),
    "1.18": _main(
        "tensor<64x256xf32>",
        _op(
            "custom_call",
            f'call_target_name = "f", api_version = 2 : i32, operand_layouts = [{_TILED}], '
            f"result_layouts = [{_TILED}], result_tilings = [[dense<[8, 128]> : tensor<2xindex>]]",
            "tensor<64x256xf32>",
        ),
    ),
    "1.19": _main("tensor<f32>", _op("collective_reduce", _GROUPS, "tensor<f32>", region=_ADD)),
    "1.20": _main(
        "tensor<16xf32>",
        f'%0 = "stablehlo.collective_broadcast"(%x, %r) {{{_GROUPS}, channel_handle = '
        "#stablehlo.channel_handle<handle = 1, type = 0>, has_dynamic_root} : (tensor<16xf32>, tensor<1xi32>) -> "
        "tensor<16xf32>",
        more=", %r: tensor<1xi32>",
    ),
}
DIALECTS = {
    "sdy": 'sdy.mesh @mesh = <["x"=1]>\n'
    + _main("tensor<2xf32>", '%0 = sdy.sharding_constraint %x <@mesh, [{"x"}]> : tensor<2xf32>'),
    "chlo": _main("tensor<2xf32>", "%0 = chlo.erf %x : tensor<2xf32> -> tensor<2xf32>"),
    "shape": _main("tensor<2xf32>", "%0 = shape.shape_of %x : tensor<2xf32> -> tensor<1xindex>", value="%x"),
}


def write_artifacts(folder: Path) -> None:
    """Write a portable artifact for each of `VERSIONS` and `DIALECTS` into a folder."""
    from jax._src.interpreters.mlir import make_ir_context  # the one context that has Shardy's dialect
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    for version, text in VERSIONS.items():
        data = stablehlo.serialize_portable_artifact_str(text, f"{version}.0")
        (folder / f"{version}.mlirbc").write_bytes(data)
    for dialect, text in DIALECTS.items():
        with make_ir_context():
            # An old target, so that a runtime can refuse nothing but the dialect.
            data = stablehlo.serialize_portable_artifact(ir.Module.parse(text), "0.16.0", True)
        (folder / f"{dialect}.mlirbc").write_bytes(data)


def published(name: str, index: str, known: dict[str, RuntimeRelease]) -> dict[str, RuntimeRelease]:
    """Return the releases of a runtime on a package index, lowest version first.

    Args:
        name: the runtime.
        index: the address of the index.
        known: the releases that are in the runtime's file. A release that is not among them has only its build date
            and its versions of CPython, and is still to be measured.
    """
    source = SOURCES[name]
    wheels = [_wheels(index, package, source.oldest) for package in source.packages]
    beside = [f"{package}=={max(_wheels(index, package, '0'), key=version_key)}" for package in source.beside]
    releases = {}
    for version in sorted(set.intersection(*map(set, wheels)), key=version_key):
        minors = set.intersection(*(set(files[version]) for files in wheels))
        if 12 not in minors:
            continue
        pythons = tuple(f"3.{minor}" for minor in sorted(minors))
        if version in known:
            releases[version] = msgspec.structs.replace(known[version], python=pythons)
        else:
            built = _built(index, wheels[0][version][12])
            releases[version] = RuntimeRelease(built, pythons, requires=tuple(beside))
    return releases


def _wheels(index: str, package: str, oldest: str) -> dict[str, dict[int, IndexFile]]:
    """Return the x86-64 Linux wheels of a package, by release and by the minor version of CPython.

    Pre-releases, withdrawn releases and releases before `oldest` are left out.
    """
    files: dict[str, dict[int, IndexFile]] = defaultdict(dict)
    for file in index_files(index, package):
        with contextlib.suppress(InvalidWheelFilename):
            _, version, _, tags = parse_wheel_filename(file.name)
            if version < version_key(oldest) or version.is_prerelease or file.yanked is not False:
                continue
            for tag in tags:
                if not (tag.platform.endswith("x86_64") and "linux" in tag.platform) or tag.abi.endswith("t"):
                    continue
                minor = int(tag.interpreter.removeprefix("cp3"))
                # A wheel with the stable ABI works on every CPython from its own on.
                for each in PYTHONS if tag.abi == "abi3" else [minor]:
                    if each >= minor and each in PYTHONS:
                        files[str(version)].setdefault(each, file)
    return files


def _built(index: str, file: IndexFile) -> datetime.date:
    with contextlib.closing(RemoteFile(file.url, index=index)) as remote:
        return read_open_wheel(cast(BinaryIO, remote), file.name, path=Path(file.name), source=file.url).built


def measured(name: str, version: str, release: RuntimeRelease, artifacts: Path, environment: Path) -> RuntimeRelease:
    """Run the probe in a release's environment, and return the release with what the probe measured.

    Args:
        name: the runtime.
        version: the version of the release.
        release: the release without measurements.
        artifacts: the folder of the artifacts that the probe tries to read.
        environment: the folder of the environment, which is built if it is missing.

    Raises:
        SystemExit: the release reads an artifact of a later version of StableHLO, but not of an earlier version.
    """
    python = environment / "bin" / "python"
    if not python.exists():
        uv = uv_command()
        requirements = [f"{package}=={version}" for package in SOURCES[name].packages]
        subprocess.run([uv, "venv", "--quiet", "--python", find_python("3.12", uv), environment], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", python, *requirements, *release.requires]
        subprocess.run([*install, "numpy", "ml_dtypes"], check=True)
    done = subprocess.run(
        [python, PROBE, name, artifacts], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    stablehlo = answer["says"]
    steps = sorted(VERSIONS, key=version_pair)
    read = [step for step in steps if step in answer["read"]]
    # Every later version reads a version's artifact, so a gap means that the probe measured something else.
    expected = [step for step in steps if version_pair(step) <= version_pair(stablehlo or read[-1])]
    if read != expected:
        raise SystemExit(f"{name} {version}: StableHLO {stablehlo}: expected to read {expected}, found {read}.")
    dialects = tuple(dialect for dialect in DIALECTS if dialect in answer["read"])
    return msgspec.structs.replace(
        release, stablehlo=stablehlo or read[-1], convention=answer["convention"], dialects=dialects
    )


def path_of(name: str) -> Path:
    """Return the path of the file with the releases of a runtime."""
    return FOLDER / f"{name}_releases.yaml"


def read_releases(name: str) -> dict[str, RuntimeRelease]:
    """Return the releases in the file of a runtime, by version; an empty dict if there is no file yet."""
    path = path_of(name)
    text = path.read_bytes() if path.exists() else b""
    return msgspec.yaml.decode(text, type=dict[str, RuntimeRelease] | None) or {}


def write_releases(name: str, releases: dict[str, RuntimeRelease]) -> None:
    """Write the file of a runtime: the comment with which it begins, then a line for each release."""
    path = path_of(name)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    lines = [line for line in lines if line.startswith("#")]
    for version, release in releases.items():
        data = {key: value for key, value in msgspec.to_builtins(release).items() if value or key in _ALWAYS}
        fields = [f"{key}: {value if key == 'built' else json.dumps(value)}" for key, value in data.items()]
        lines.append(f'"{version}": {{{", ".join(fields)}}}')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Write the files of the runtimes that the command line names, or of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SOURCES), help="runtimes; all where none is named")
    parser.add_argument("--again", action="store_true", help="measure the known releases again too")
    parser.add_argument("--environments", type=Path, help="store environments in this folder, and use those in it")
    options = parser.parse_args()
    index = configured_index()
    with tempfile.TemporaryDirectory() as scratch:
        write_artifacts(Path(scratch))
        for name in options.names:
            known = read_releases(name)
            releases = published(name, index, known)
            for version, release in releases.items():
                if version not in known or options.again:
                    with tempfile.TemporaryDirectory() as temporary:
                        environment = (options.environments or Path(temporary)) / f"{name}-{version}"
                        releases[version] = measured(name, version, release, Path(scratch), environment)
                    print(f"{name} {version}: {releases[version]}", flush=True)
                    # Written after each release, since the next measurement may fail.
                    known[version] = releases[version]
                    write_releases(name, {each: releases[each] for each in releases if each in known})
            write_releases(name, releases)


if __name__ == "__main__":
    main()
