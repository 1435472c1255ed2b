"""The marker `@pytest.mark.export_compat`, and the life of a test that has it.

A marked test exports a jitted function and keeps what it exported in a golden: the artifact, its inputs, and the
outputs that this jax computed. From then on the test fails if the function exports something else, or if a golden no
longer runs. The messages below are what pytest prints; `...` stands for names.

1. Write the test. Give the jitted function its example arguments:

    @pytest.mark.export_compat
    def test_wave(export_golden):
        export_golden(jax.jit(wave), np.arange(8.0))

2. Run `pytest`. The test fails, since it has no golden:

    | No golden of this test yet: expected one in ...
    | Write it: pytest --update-goldens ...

3. Run `pytest --update-goldens`, and commit the folder `golden`. Each golden is replayed in a new process before it is
   written, and its noise is measured: how far its outputs move by rounding alone.

    | 1 golden new: ...

4. Run `pytest`, each day. The function is exported again and compared with its golden, and each golden runs in a new
   process, as a server would run it:

    | 1 case checked against 1 golden: 1 kept

5. Change the function. Other outputs, and other operations with equal outputs, fail the test:

    | Other numbers than its golden by ...
    | numbers: output 0 ...
    | export changed, beyond locations and names:
    | If the change is intended: pytest --update-goldens ...

   `--update-goldens` replaces the golden of this jaxlib. Goldens by other jaxlibs stay: they are what is deployed.

    | 1 golden replaced: ...

6. Change the example arguments. The golden's inputs are what is compared, so a note says that yours are not used:

    | example arguments are not the golden's inputs, which were compared: ...

7. Install another jax. The goldens of the old one must still run: each that does not is a broken promise, and a golden
   by the new jaxlib is missing. `pytest --update-goldens=missing` adds it beside the old one:

    | no golden by ... yet of ...

8. Before a release, run `jaxexport matrix`: every golden in every jaxlib that JAX promises it to. It says KEPT, or
   BROKEN with the cause. `jaxexport explain` says what to do.

9. A golden leaves its window 180 days after its jaxlib was built. It still runs here: what works is a `bonus`, what
   JAX refuses is `outside`, and neither fails the test. `jaxexport goldens prune` deletes such goldens.

10. Rename the test. Its golden is found, and the command that renames it:

    | Was it renamed? The unused case ...

11. Delete the test. A run of all tests lists its goldens, and `pytest --prune-goldens` deletes them:

    | unused: ...

`jaxexport goldens list` shows all goldens, `jaxexport inspect CASE` those of one case. The keywords of the marker:

"""

import textwrap

from pytest_jaxexport.marker import all_keywords

__all__: list[str] = []


def keyword_lines() -> str:
    """Return a paragraph for each keyword of the marker: an example, then its meaning."""
    return "\n".join(
        f"{name}={example}\n{textwrap.fill(meaning, 100, initial_indent='    ', subsequent_indent='    ')}"
        for name, (_, meaning, example) in all_keywords().items()
    )


__doc__ = f"{__doc__}{keyword_lines()}\n"
