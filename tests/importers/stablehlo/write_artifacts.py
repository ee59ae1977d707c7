"""Writes the artifacts of `texts.py` with jaxlib: `python -m tests.importers.stablehlo.write_artifacts`."""

from __future__ import annotations

from tests.importers.stablehlo.seeds import FOLDER
from tests.importers.stablehlo.texts import TEXTS
from tests.rings.jaxlib_reading import serialized

# Versions of StableHLO, which have the versions 0, 1, 3, 4 and 6 of the bytecode.
VERSIONS = ("0.9.0", "0.10.0", "0.12.0", "0.14.0", "1.15.0")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in TEXTS.items():
        for version in VERSIONS if name == "regions" else (VERSIONS[0], VERSIONS[2], VERSIONS[-1]):
            data = serialized(text, version)
            if data is not None:
                (FOLDER / f"{name}-{version}.mlirbc").write_bytes(data)


if __name__ == "__main__":
    main()
