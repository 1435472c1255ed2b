"""A check that damaged artifacts raise nothing but an ArtifactError, in bounded time and memory.

`nox -s fuzz [-- --seconds 3600]` reads mutated, cut and spliced artifacts until the time is over. The exit code is 1 if
an input broke a limit; such inputs are written to --keep.
"""

import argparse
import random
import sys
import time
import tracemalloc
from pathlib import Path

from stored_artifacts import FILES, SAVED_MODELS, jax_goldens

from export_core.artifact import Artifact, ArtifactError, as_dict, read_bytes
from export_core.artifact.audit import audit
from export_core.artifact.bounded_outputs import bounded_outputs
from export_core.artifact.envelope.encode import encode
from export_core.artifact.main_check import check_main
from export_core.artifact.numerics import factored_outputs
from export_core.artifact.readers import loads, readers_of
from export_core.knowledge import forecasts
from export_core.policy.load_check import find_reader
from export_core.policy.terms import Terms
from export_core.releases.calendar_entries import shipped_entries

READERS = [reader for jaxlib, reader in readers_of(shipped_entries()).items() if jaxlib in ("0.4.30", "0.12.0.1")]
FORECAST = [*READERS, *(find_reader(name, Terms(shipped_entries())) for name in ("iree==3.13.0", "litert==2.3.0"))]
MAX_SECONDS = 1.0  # of CPU, for one input
TIMES = 3  # reading may take so many times the file's size in memory, and CONSTANT
CONSTANT = 256_000  # bytes that reading takes for any file: tables of names, the smallest parts
TRACED_EVERY = 20  # of so many inputs, the memory of one is measured: that makes reading five times slower
WORDS = (b"\0" + b"\xff" * 8, b"\xff" * 4, b"\xff\x7f", b"\x80\0\0\0", b"\xfe" * 2, b"\0" * 9, b"\x01" * 4, b"ML\xefR")


def damaged(pool: list[bytes], choose: random.Random) -> bytes:
    """Return the bytes of a random artifact of the pool with one to eight changes."""
    data = bytearray(choose.choice(pool))
    for _ in range(choose.choice((1, 1, 1, 2, 3, 4, 8))):
        at = choose.randrange(len(data) + 1)
        kind = choose.randrange(9)
        if kind == 0:
            data[at : at + 1] = bytes([choose.randrange(256)])
        elif kind == 1:
            data[at : at + 1] = bytes([data[at] ^ 1 << choose.randrange(8)] if at < len(data) else b"")
        elif kind == 2:
            data[at:at] = choose.randbytes(choose.randrange(1, 17))
        elif kind == 3:
            del data[at : at + choose.randrange(1, 65)]
        elif kind == 4:
            data[at:at] = data[at : at + choose.randrange(1, 257)] * choose.choice((1, 1, 2, 50))
        elif kind == 5:
            del data[at:]
        elif kind == 6:
            word = choose.choice(WORDS)
            data[at : at + len(word)] = word
        elif kind == 7 and len(data) >= 4:  # an offset or a count of the flatbuffer
            at = at & ~3
            offset = choose.choice((0, 4, 8, 16, 1 << 16, 1 << 31)) + choose.randrange(64)
            data[at : at + 4] = offset.to_bytes(4, "little")
        else:
            other = choose.choice(pool)
            start = choose.randrange(len(other))
            data[at : at + choose.randrange(1, 512)] = other[start : start + choose.randrange(1, 512)]
    return bytes(data)


def asked(data: bytes) -> Artifact:
    """Read the parts of an artifact that `jaxexport inspect` and the matrix read.

    The fuzzer's limit of memory is for this step.
    """
    artifact = read_bytes(data)
    for module in artifact.modules:
        assert module.op_counts is not None
    audit(artifact, frozenset())
    loads(artifact, READERS)
    return artifact


def use(data: bytes) -> None:
    """Read everything that can be read of an artifact. The fuzzer's limit of time is for this step."""
    artifact = asked(data)
    for module in artifact.modules:
        as_dict((module.functions, module.constants, module.attributes))
    check_main(artifact)
    factored_outputs(artifact)
    bounded_outputs(artifact, [0])
    for known in forecasts(artifact, FORECAST):
        assert known.in_words
    if artifact.envelope is not None:
        str(artifact.envelope.in_tree)
        artifact.envelope.in_tree.paths("args")
        read_bytes(encode(artifact.envelope))


class Watched:
    """A run of the check: it reads inputs, counts what happens, and records the most time and memory that one took.

    Inputs that break a limit are written to the folder `keep`, if there is one.
    """

    def __init__(self, keep: Path | None) -> None:
        self.inputs = self.read = self.traced = self.broken = 0
        self.slowest = self.worst = 0.0
        self.rest = 0
        self.keep = keep

    def give(self, data: bytes) -> None:
        """Read an input, and count what happened; the memory is measured for every `TRACED_EVERY`-th input."""
        self.inputs += 1
        traced = self.inputs % TRACED_EVERY == 0
        started = time.process_time()
        try:
            use(data)
            self.read += 1
        except ArtifactError as error:
            if "on which it failed" in str(error):
                self.note(data, str(error))
        except Exception as error:
            self.note(data, f"{type(error).__name__}: {error}")
        seconds = time.process_time() - started
        self.slowest = max(self.slowest, seconds)
        if seconds > MAX_SECONDS:
            self.note(data, f"{seconds:.2f} s of CPU")
        if traced:
            self.weigh(data)

    def weigh(self, data: bytes) -> None:
        """Read an input again, and measure the most memory that this takes."""
        self.traced += 1
        tracemalloc.start()
        try:
            asked(data)
        except ArtifactError:
            pass
        except Exception as error:
            self.note(data, f"{type(error).__name__}: {error}")
            return
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        size = max(len(data), 1)
        self.worst = max(self.worst, peak / size if size >= 1024 else 0)
        self.rest = max(self.rest, peak - TIMES * size)
        if peak > TIMES * size + CONSTANT:
            self.note(data, f"{peak} bytes of memory for {size}")

    def note(self, data: bytes, what: str) -> None:
        """Count an input that broke a limit, print how, and store it."""
        self.broken += 1
        print(f"input {self.inputs}, {len(data)} bytes: {what}", flush=True)
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            (self.keep / f"broken-{self.inputs}.bin").write_bytes(data)

    def summary(self, seconds: float) -> str:
        """Return a line with the counts and the largest time and memory so far, given the seconds of the run."""
        return (
            f"{self.inputs} inputs in {seconds:.0f} s ({self.inputs / seconds:.0f} a second): {self.read} read, "
            f"{self.inputs - self.read} refused, {self.broken} broke a limit; slowest {1000 * self.slowest:.0f} ms of "
            f"CPU; memory of {self.traced}: at most {self.worst:.1f} times the file (of 1 kB or more), "
            f"at most {self.rest / 1e6:+.2f} MB above {TIMES} times ({CONSTANT / 1e6:.3f} MB allowed)"
        )


def main() -> int:
    """Read damaged artifacts for `--seconds`, and print a line every minute and at the end.

    Return 1 if an input broke a limit, else 0.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="to see the same inputs again; random by default")
    parser.add_argument("--keep", type=Path, help="folder for inputs that broke a limit")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    choose = random.Random(seed)
    pool = [path.read_bytes() for path in (*FILES, *SAVED_MODELS)]
    pool += [golden["mlir_module_serialized"] for golden in jax_goldens().values()]
    pool = [data for data in pool if len(data) < 100_000]
    print(f"seed {seed}, {len(pool)} artifacts to break", flush=True)
    use(pool[0])  # loads modules and tables, which would count for the first input
    watched = Watched(options.keep)
    started = printed = time.monotonic()
    while (now := time.monotonic()) - started < options.seconds:
        if now - printed > 60:
            print(watched.summary(now - started), flush=True)
            printed = now
        watched.give(damaged(pool, choose))
    print(watched.summary(time.monotonic() - started), flush=True)
    return 1 if watched.broken or not watched.inputs else 0


if __name__ == "__main__":
    sys.exit(main())
