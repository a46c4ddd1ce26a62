"""``python -m parfocal`` is the command."""

from parfocal.cli.main import main

if __name__ == "__main__":
    main()
