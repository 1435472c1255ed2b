"""Scripts for maintainers; none of them is in the wheel."""

from pathlib import Path


def renew(path: Path, text: str | bytes) -> None:
    """Write a file that a script makes, and print whether its content changed."""
    data = text.encode() if isinstance(text, str) else text
    is_same = path.is_file() and path.read_bytes() == data
    if not is_same:
        path.write_bytes(data)
    print(f"{path}: {'unchanged' if is_same else 'written'}")
