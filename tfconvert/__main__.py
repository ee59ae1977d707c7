"""`python -m tfconvert` and the `tfconvert` command."""

from converter.cli import main

if __name__ == "__main__":
    main()
