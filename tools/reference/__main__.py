"""Renew the pages of the reference: ``python -m tools.reference``."""

from tools.reference import pages, renewed

for page in pages():
    page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
