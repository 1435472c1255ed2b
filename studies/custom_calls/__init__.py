"""A custom call that changes: what two of its days export, in five releases (docs/how-to/change-a-custom-call.md)."""
