"""The command that renews the pages of the reference: ``python -m tools.reference``."""

from tools import renew
from tools.reference import pages, renewed

for page in pages():
    renew(page, renewed(page.read_text(encoding="utf-8")))
