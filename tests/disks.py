"""A full disk for a command in a test: a small tmpfs where mounting is allowed, else a limit on the size of files.

In a mount namespace of its own a user may mount too, where the system lets them; root may. What came out is copied
before it is gone.
"""

import functools
import subprocess
from pathlib import Path

NAMESPACES = (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount"))
NO_ROOM = r"(No space left on device|File too large|disk I/O error|database or disk is full)"
"""What the system says: with a full disk, or with a limit."""


@functools.cache
def namespace() -> tuple[str, ...]:
    """The command that lets another one mount, or nothing where none does."""
    for words in NAMESPACES:
        mount = [*words, "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
        try:
            if subprocess.run(mount, capture_output=True, check=False).returncode == 0:
                return words
        except OSError:
            continue
    return ()


def on_a_small_disk(
    disk: Path, kilobytes: int, script: str, *, of_a_file: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script of bash. In it, ``limited COMMAND`` has no more room than that in the folder `disk`, until ``grow``.

    Where nothing can be mounted, each file that it writes anywhere has at most so many, or `of_a_file`.
    """
    disk.mkdir(exist_ok=True)
    if namespace():
        prepare = (
            f"mount -t tmpfs -o size={kilobytes}k tmpfs {disk}\n"
            f'limited() {{ "$@"; }}\ngrow() {{ mount -o remount,size=1g {disk}; }}\n'
        )
    else:
        prepare = f'limited() {{ (ulimit -f {of_a_file or kilobytes}; exec "$@"); }}\ngrow() {{ true; }}\n'
    return subprocess.run(
        [*namespace(), "bash", "-c", prepare + script], capture_output=True, text=True, check=False, timeout=300
    )
