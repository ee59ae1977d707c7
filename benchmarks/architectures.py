"""The table of the zoo's networks: the libraries that have them, and the ranges of their inputs.

Here is every architecture of keras.applications with up to 120 MB of weights, and three larger ones that represent
deeper nets of their families: ResNet101, ResNet101V2 and InceptionResNetV2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Flavour = Literal["k3", "tfk"]

# `k3`: Keras 3's `model.export`; `tfk`: tf_keras' `model.save(..., save_format="tf")`.
FLAVOURS: Final[tuple[Flavour, ...]] = ("k3", "tfk")

PIXELS: Final = (0.0, 255.0)
SYMMETRIC: Final = (-1.0, 1.0)
CENTRED: Final = (-124.0, 151.0)
NORMALIZED: Final = (-2.1, 2.6)


@dataclass(frozen=True, slots=True)
class Architecture:
    """A network."""

    name: str  # Its name in keras.applications.
    input_range: tuple[float, float]  # The least and greatest number of a preprocessed image.
    flavours: tuple[Flavour, ...] = FLAVOURS  # The libraries that have it.


_TABLE: Final[tuple[tuple[tuple[float, float], str], ...]] = (
    (SYMMETRIC, "MobileNet MobileNetV2 ResNet50V2 ResNet101V2 InceptionV3 InceptionResNetV2 Xception NASNetMobile"),
    (CENTRED, "ResNet50 ResNet101"),
    (NORMALIZED, "DenseNet121 DenseNet169 DenseNet201"),
    (PIXELS, "MobileNetV3Small MobileNetV3Large ConvNeXtTiny"),
    (PIXELS, "EfficientNetB0 EfficientNetB1 EfficientNetB2 EfficientNetB3 EfficientNetB4"),
    (PIXELS, "EfficientNetV2B0 EfficientNetV2B1 EfficientNetV2B2 EfficientNetV2B3 EfficientNetV2S"),
)

_TF_KERAS_ONLY: Final = (
    "RegNetX002 RegNetX004 RegNetX006 RegNetX008 RegNetX016 RegNetX032 RegNetX040 RegNetX064 "
    "RegNetY002 RegNetY004 RegNetY006 RegNetY008 RegNetY016 RegNetY032 RegNetY040"
)

ARCHITECTURES: Final[dict[str, Architecture]] = {
    row.name: row
    for row in (
        *(Architecture(name, numbers) for numbers, names in _TABLE for name in names.split()),
        *(Architecture(name, PIXELS, ("tfk",)) for name in _TF_KERAS_ONLY.split()),
    )
}

# One net of each family, measured by `make bench`.
BENCH_SET: Final = (
    "MobileNetV2",
    "ResNet50",
    "EfficientNetB0",
    "MobileNetV3Small",
    "DenseNet121",
    "InceptionV3",
    "EfficientNetV2B0",
    "NASNetMobile",
    "ConvNeXtTiny",
)
