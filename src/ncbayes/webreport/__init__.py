"""The report of a fit: one HTML page that needs no other file and no network."""

from ncbayes.webreport.pages import write

__all__ = ["write"]
