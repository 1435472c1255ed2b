"""Whether runs in double precision would show more noise: `python -m benchmarks.numbers.double --work DIR`.

Of each program with float32 arguments: how far its outputs are from those in double precision, in units of the noise
that its writer measured without them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import jax
import numpy as np

from benchmarks.numbers.collect import Folders, program_of
from benchmarks.numbers.programs import PROGRAMS
from export_core.comparing.noise import FACTOR, noise_with_floors
from export_core.comparing.rules import call_noise
from export_core.goldens import Golden, GoldenStore
from export_core.goldens.store import OUTPUTS


def largest_error(golden: Golden) -> float:
    """The largest error of a golden's outputs against those in double precision, in units of its noise."""
    program, noise = PROGRAMS[program_of(golden)], call_noise(golden)[OUTPUTS]
    wide = (np.float64(given) if given.dtype == np.float32 else given for given in map(np.asarray, program.arguments))
    errors = [0.0]
    for leaf, own, exact in zip(golden.outputs(), noise.outputs, jax.tree.leaves(program.function(*wide)), strict=True):
        if own is not None and leaf.dtype == "float32":
            values = leaf.numpy()
            error = np.abs(np.asarray(exact, np.float64) - values) / noise_with_floors(
                values, own, leaf.dtype, noise.narrowest_float
            )
            errors.append(float(error[np.isfinite(error)].max(initial=0.0)))
    return max(errors)


def main() -> None:
    """Print the largest error of each golden that is beyond the noise, the largest first, and how many there are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="The folder of an earlier `nox -s numbers -- --work`.")
    jax.config.update("jax_enable_x64", True)
    goldens = [
        golden
        for golden in GoldenStore(Folders(parser.parse_args().work).goldens).goldens()
        if not (PROGRAMS[program_of(golden)].x64 or PROGRAMS[program_of(golden)].lapack)
    ]
    found, fixed = [], 0
    for golden in goldens:
        try:
            found.append((largest_error(golden), golden.id))
        except (TypeError, ValueError):  # a type in the program does not follow its arguments
            fixed += 1
    errors = sorted(found, reverse=True)
    for error, name in errors:
        if error > 1:
            print(f"{error:8.2f} times the noise: {name}")
    print(f"{fixed} goldens are of programs that fix a type")
    print(f"{len(errors)} goldens, {sum(error > FACTOR for error, _ in errors)} beyond {FACTOR:g} times the noise")


if __name__ == "__main__":
    main()
