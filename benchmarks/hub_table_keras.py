"""The networks of keras-hub that `hub_models.py` builds, small and random as those of `hub_table.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.hub_table import BATCHES, TEXT_SIZES, TRANSFORMERS, VOCABULARY, WIDTH, Input, Network
from benchmarks.hub_table_further import FURTHER

_IDS: Final = Input("tokens", ("B", "L"))
_MASK: Final = Input("mask", ("B", "L"))
_DECODER: Final = {"decoder_token_ids": Input("tokens", ("B", "M")), "decoder_padding_mask": Input("mask", ("B", "M"))}
_TEXT: Final = {"token_ids": _IDS, "padding_mask": _MASK}
_TWO_TEXTS: Final = {"encoder_token_ids": _IDS, "encoder_padding_mask": _MASK, **_DECODER}
_IMAGE: Final = {"image": Input("numbers", ("B", 64, 64, 3))}
_OPEN_IMAGE: Final = {"image": Input("numbers", ("B", "H", "W", 3))}
_IMAGE_SIZES: Final = ({"B": 1, "H": 64, "W": 64}, {"B": 2, "H": 96, "W": 64}, {"B": 3, "H": 64, "W": 128})

_BASE: Final = {
    "vocabulary_size": VOCABULARY,
    "num_layers": 2,
    "num_heads": 4,
    "hidden_dim": WIDTH,
    "intermediate_dim": 40,
}
_GROUPED: Final = {
    "vocabulary_size": VOCABULARY,
    "num_layers": 2,
    "num_query_heads": 4,
    "num_key_value_heads": 2,
    "hidden_dim": WIDTH,
    "intermediate_dim": 40,
}
_LENGTH: Final = {"max_sequence_length": 64}


def _text(name: str, settings: Mapping[str, Any], inputs: Mapping[str, Input] = _TEXT) -> Network:
    return Network(f"hub-{name.lower()}", "keras_hub", f"{name}Backbone", settings, inputs, TEXT_SIZES)


def _image(name: str, settings: Mapping[str, Any], inputs: Mapping[str, Input] = _IMAGE) -> Network:
    sizes = BATCHES if inputs is _IMAGE else _IMAGE_SIZES
    return Network(f"hub-{name.lower()}", "keras_hub", f"{name}Backbone", settings, inputs, sizes)


_WHISPER: Final = {"num_mels": 16, "max_encoder_sequence_length": 60, "max_decoder_sequence_length": 40}
_VIT: Final = {"image_shape": (64, 64, 3), "patch_size": 16, "num_layers": 2, "num_heads": 2, "hidden_dim": WIDTH}

KERAS_HUB: Final = (
    _text("Bert", {**_BASE, **_LENGTH}, {**_TEXT, "segment_ids": Input("mask", ("B", "L"))}),
    _text("DistilBert", {**_BASE, **_LENGTH}),
    _text("Roberta", {**_BASE, **_LENGTH}),
    _text("GPT2", {**_BASE, **_LENGTH}),
    _text("T5", {**_BASE, "key_value_dim": 8}, _TWO_TEXTS),
    _text("Bart", {**_BASE, **_LENGTH}, _TWO_TEXTS),
    _text("Whisper", {**_BASE, **_WHISPER}, {"encoder_features": Input("numbers", ("B", 60, 16)), **_DECODER}),
    _text("Llama", _GROUPED),
    _text("Mistral", {**_GROUPED, "sliding_window": 6}),
    _text("Gemma", {**_GROUPED, "head_dim": 8}),
    _image("ViT", {**_VIT, "mlp_dim": 40}),
    _image("DeiT", {**_VIT, "intermediate_dim": 40}),
    _image(
        "SwinTransformer",
        {"image_shape": (64, 64, 3), "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4), "window_size": 4},
    ),
    _image(
        "MiT",
        {
            "layerwise_depths": [1, 1],
            "num_layers": 2,
            "layerwise_num_heads": [1, 2],
            "layerwise_sr_ratios": [4, 1],
            "max_drop_path_rate": 0.0,
            "layerwise_patch_sizes": [7, 3],
            "layerwise_strides": [4, 2],
            "image_shape": (64, 64, 3),
            "hidden_dims": [16, 32],
        },
    ),
    _image(
        "ResNet",
        {
            "input_conv_filters": [64],
            "input_conv_kernel_sizes": [7],
            "stackwise_num_filters": [64, 64],
            "stackwise_num_blocks": [1, 2],
            "stackwise_num_strides": [1, 2],
            "block_type": "basic_block",
        },
        _OPEN_IMAGE,
    ),
)

# All networks.
NETWORKS: Final = (*TRANSFORMERS, *FURTHER, *KERAS_HUB)
