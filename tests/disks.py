"""A full disk for a command: a small tmpfs where mounting is allowed, otherwise a limit on the size of files.

Root may mount, and on some systems a user in a mount namespace of its own. Scripts copy their results out of the disk
before it disappears.
"""

import functools
import subprocess
from pathlib import Path

NAMESPACES = (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount"))
NO_ROOM = r"(No space left on device|File too large|disk I/O error|database or disk is full)"
"""The errors of a full disk, or of a limit on the size of files."""


@functools.cache
def namespace() -> tuple[str, ...]:
    """Return the command that lets another command mount, or an empty tuple if none does."""
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
    """Run a bash script in which a command has only so many kilobytes of space in the folder `disk`.

    The script runs the command as ``limited COMMAND``; after the script has called ``grow``, there is enough space.
    Where no disk can be mounted, each file that the command writes has at most `kilobytes`, or `of_a_file` if given.
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
