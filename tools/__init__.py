"""Scripts for maintainers; none of them is in the wheel."""
