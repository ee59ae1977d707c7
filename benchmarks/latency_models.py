"""The models whose inference `latency.py` measures: networks as they are written for Keras and TensorFlow.

Each is built by code, with random weights, at a size that an inference takes a few milliseconds for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks import latency_networks as nets
from benchmarks import latency_transformers as transformers

Spec = tuple[tuple[int | None, ...], str]


@dataclass(frozen=True, slots=True)
class LatencyModel:
    """A model."""

    name: str  # Its name.
    family: str  # `cnn`, `transformer`, `recurrent`, `audio`, `vision` (detection, segmentation, images) or `other`.
    build: Callable[[], Any]  # Returns a Keras model, or a function of tensors.
    inputs: tuple[Spec, ...] = ()  # The shapes and types of a function's inputs.


def _applications() -> list[LatencyModel]:
    sizes = {
        "MobileNet": 128,
        "MobileNetV2": 128,
        "MobileNetV3Small": 128,
        "EfficientNetB0": 128,
        "EfficientNetV2B0": 128,
        "ResNet50": 128,
        "ResNet50V2": 128,
        "DenseNet121": 128,
        "InceptionV3": 139,
        "Xception": 128,
        "NASNetMobile": 128,
        "ConvNeXtTiny": 96,
    }
    return [LatencyModel(name, "cnn", partial(nets.application, name, size)) for name, size in sizes.items()]


_INT = "int32"
_CACHE: Spec = ((1, 2, 48, 24), "float32")
_RECURRENT: tuple[tuple[str, str, int, int, dict[str, bool]], ...] = (
    ("lstm", "LSTM", 32, 50, {}),
    ("lstm_sequences", "LSTM", 64, 50, {"return_sequences": True}),
    ("lstm_unrolled_8", "LSTM", 8, 10, {"unroll": True}),
    ("lstm_unrolled_64", "LSTM", 64, 10, {"unroll": True}),
    ("gru", "GRU", 32, 50, {}),
    ("gru_unrolled", "GRU", 16, 10, {"unroll": True}),
    ("rnn", "SimpleRNN", 32, 50, {}),
    ("lstm_bidirectional", "LSTM", 32, 30, {"bidirectional": True}),
    ("gru_bidirectional", "GRU", 32, 30, {"bidirectional": True}),
)

MODELS: tuple[LatencyModel, ...] = (
    LatencyModel("hugging_bert", "transformer", transformers.hugging_bert, (((1, 64), _INT),) * 3),
    LatencyModel("gpt", "transformer", transformers.gpt, (((1, 48), _INT),)),
    LatencyModel("llama", "transformer", transformers.llama, (((1, 48), _INT),)),
    LatencyModel("llama_step", "transformer", transformers.llama_step, (((1, 1), _INT), *[_CACHE] * 4)),
    LatencyModel("t5", "transformer", transformers.t5, (((1, 48), _INT),) * 2),
    LatencyModel("keras_bert", "transformer", transformers.keras_bert),
    LatencyModel("keras_vit", "transformer", transformers.keras_vit),
    LatencyModel("keras_decoder", "transformer", transformers.keras_decoder),
    LatencyModel("translation", "transformer", transformers.translation),
    LatencyModel("swin", "transformer", transformers.swin),
    LatencyModel("mobile_vit", "transformer", transformers.mobile_vit),
    LatencyModel("mixer", "transformer", transformers.mixer),
    LatencyModel("conformer", "transformer", transformers.conformer),
    LatencyModel("detr", "transformer", transformers.detr),
    LatencyModel("diffusion", "transformer", transformers.diffusion),
    LatencyModel("timm_vit", "transformer", transformers.timm_vit, (((1, 56, 56, 3), "float32"),)),
    LatencyModel("gpt_j", "transformer", transformers.gpt_j, (((1, 48), _INT),)),
    LatencyModel("clip_text", "transformer", transformers.clip_text, (((1, 160), _INT),)),
    LatencyModel("beit", "transformer", transformers.beit, (((1, 64, 64, 3), "float32"),)),
    LatencyModel("bloom", "transformer", transformers.bloom, (((1, 64), _INT),) * 2),
    LatencyModel("cosine_attention", "transformer", transformers.cosine_attention, (((4, 64, 64), "float32"),)),
    LatencyModel("perceiver", "transformer", transformers.perceiver),
    LatencyModel("small_cnn", "cnn", nets.small_cnn),
    LatencyModel("vgg", "cnn", nets.vgg),
    LatencyModel("squeezenet", "cnn", nets.squeezenet),
    LatencyModel("shufflenet", "cnn", nets.shufflenet),
    LatencyModel("grouped", "cnn", nets.grouped),
    LatencyModel("branches", "cnn", nets.branches),
    LatencyModel("split_groups", "cnn", nets.split_groups),
    LatencyModel("hard_swish", "cnn", nets.squeeze_excite),
    LatencyModel("swish", "cnn", partial(nets.squeeze_excite, "swish")),
    LatencyModel("mixed_padding", "cnn", nets.mixed_padding),
    LatencyModel("channels_first", "cnn", nets.channels_first, (((1, 3, 64, 64), "float32"),)),
    LatencyModel("keyword_spotting", "audio", nets.keyword_spotting),
    LatencyModel("temporal", "audio", nets.temporal),
    LatencyModel("wavenet", "audio", nets.wavenet),
    LatencyModel("wav2vec", "audio", nets.wav2vec),
    LatencyModel("spectrogram", "audio", nets.spectrogram, (((1, 4000), "float32"),)),
    LatencyModel("audio_unet", "audio", nets.audio_unet),
    LatencyModel("separation", "audio", nets.separation),
    LatencyModel("attention_gates", "vision", nets.attention_gates),
    LatencyModel("pyramid", "vision", nets.pyramid),
    LatencyModel("unet", "vision", nets.unet),
    LatencyModel("unet_groups", "vision", partial(nets.unet, "group")),
    LatencyModel("deeplab", "vision", nets.deeplab),
    LatencyModel("detector", "vision", nets.detector),
    LatencyModel("ssd", "vision", nets.ssd),
    LatencyModel("distances", "vision", nets.distances),
    LatencyModel("optical_flow", "vision", nets.optical_flow, (((1, 64, 64, 3), "float32"),) * 2),
    LatencyModel("generator", "vision", nets.generator),
    LatencyModel("super_resolution", "vision", nets.super_resolution),
    LatencyModel("style", "vision", nets.style),
    *(
        LatencyModel(name, "recurrent", partial(nets.recurrent, cell, units, steps, **settings))
        for name, cell, units, steps, settings in _RECURRENT
    ),
    LatencyModel("text_reader", "recurrent", nets.text_reader),
    LatencyModel("text_lstm", "recurrent", partial(nets.text_classifier, "LSTM")),
    LatencyModel("forecaster", "recurrent", nets.forecaster),
    LatencyModel("text_cnn", "other", nets.text_classifier),
    LatencyModel("autoencoder", "other", nets.autoencoder),
    LatencyModel("tabular", "other", nets.tabular),
    LatencyModel("graph_network", "other", nets.graph_network),
    LatencyModel("point_network", "other", nets.point_network),
    LatencyModel("volumes", "other", nets.volumes),
    LatencyModel("policy", "other", nets.policy),
    *_applications(),
)
