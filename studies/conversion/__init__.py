"""A study of how many failing cells a conversion fixes: `nox -s convert_check`."""
