"""``python -m ncbayes``: the command, where scripts are not on the path."""

from ncbayes.cli import app

if __name__ == "__main__":
    app()
