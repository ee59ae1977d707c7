"""The table of networks of Hugging Face's transformers and of keras-hub that `hub_models.py` builds.

All are small and have random weights: nothing is loaded. What counts is their graphs, which are those of the real ones:
masks from open lengths, positions cut from tables, keys and values of earlier steps, windows, resized feature maps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Library = Literal["transformers", "keras_hub"]
Kind = Literal["tokens", "mask", "ones", "numbers"]
Dim = str | int

VOCABULARY: Final = 99
WIDTH: Final = 32


@dataclass(frozen=True, slots=True)
class Input:
    """An argument of a network."""

    kind: Kind  # The numbers in it: token ids, zeros after ones, only ones, or normally distributed floats.
    dims: tuple[Dim, ...]  # Its sizes; a letter is open, and looked up in the sizes of a sample.


@dataclass(frozen=True, slots=True)
class Network:
    """A network."""

    name: str  # Its name in the table.
    library: Library  # The package that has it.
    make: str  # Its class, and for transformers its configuration's class after a colon.
    settings: Mapping[str, Any]  # Arguments of the configuration, or of keras-hub's backbone.
    inputs: Mapping[str, Input]  # Its arguments.
    sizes: tuple[Mapping[str, int], ...]  # The open sizes of each sample.
    # How many tensors of an earlier step's keys and values each layer takes; they are open in their length P.
    past: int = 0
    # Which part of a model of two parts is run: `encoder`, `decoder`, or the whole.
    method: Literal["", "encoder", "decoder"] = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


IDS: Final = Input("tokens", ("B", "L"))
MASK: Final = Input("mask", ("B", "L"))
TEXT: Final = {"input_ids": IDS, "attention_mask": MASK}
TWO_TEXTS: Final = {**TEXT, "decoder_input_ids": Input("tokens", ("B", "M"))}
STATES: Final = Input("numbers", ("B", "L", WIDTH))
PAST: Final = {"input_ids": Input("tokens", ("B", "M"))}
TEXT_SIZES: Final = (
    {"B": 1, "L": 7, "M": 3, "P": 4},
    {"B": 3, "L": 12, "M": 5, "P": 1},
    {"B": 2, "L": 1, "M": 1, "P": 6},
)
IMAGE: Final = {"pixel_values": Input("numbers", ("B", 3, 64, 64))}
OPEN_IMAGE: Final = {"pixel_values": Input("numbers", ("B", 3, "H", "W"))}
BATCHES: Final = ({"B": 1}, {"B": 3})
IMAGE_SIZES: Final = ({"B": 1, "H": 64, "W": 64}, {"B": 2, "H": 96, "W": 64}, {"B": 3, "H": 64, "W": 128})
SOUND: Final = {"input_values": Input("numbers", ("B", "T"))}
SOUND_SIZES: Final = ({"B": 1, "T": 800}, {"B": 2, "T": 1237}, {"B": 3, "T": 640})
CONVOLUTIONS: Final = {"conv_dim": (32, 32, 32), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3)}

BERT: Final = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
}
_T5: Final = {
    "vocab_size": VOCABULARY,
    "d_model": WIDTH,
    "d_kv": 8,
    "d_ff": 40,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
}
BART: Final = {
    "vocab_size": VOCABULARY,
    "d_model": WIDTH,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
_WHISPER: Final = {
    **{key: value for key, value in BART.items() if key != "max_position_embeddings"},
    "num_mel_bins": 16,
    "max_source_positions": 30,
    "max_target_positions": 40,
    "decoder_start_token_id": 1,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
}
WAV2VEC2: Final = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 40,
    **CONVOLUTIONS,
    "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "apply_spec_augment": False,
}
_GPT2: Final = {"vocab_size": VOCABULARY, "n_positions": 64, "n_embd": WIDTH, "n_layer": 2, "n_head": 4}
VIT: Final = {
    "image_size": 64,
    "patch_size": 16,
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 40,
}
_SWIN: Final = {
    "image_size": 64,
    "patch_size": 2,
    "embed_dim": 16,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 8,
}
_SEGFORMER: Final = {
    "num_encoder_blocks": 2,
    "depths": [1, 1],
    "sr_ratios": [4, 1],
    "hidden_sizes": [16, 32],
    "patch_sizes": [7, 3],
    "strides": [4, 2],
    "num_attention_heads": [1, 2],
    "mlp_ratios": [2, 2],
    "decoder_hidden_size": 24,
}
_MOBILEVIT: Final = {
    "image_size": 64,
    "hidden_sizes": [24, 32, 40],
    "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32],
    "num_attention_heads": 2,
}
_CONVNEXT: Final = {"hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 2, 1]}


def text(name: str, make: str, settings: Mapping[str, Any], **others: Any) -> Network:
    """Returns a network of transformers on tokens, with other fields of `Network` by name."""
    return Network(name, "transformers", make, settings, others.pop("inputs", TEXT), TEXT_SIZES, **others)


def image(
    name: str,
    make: str,
    settings: Mapping[str, Any],
    inputs: Mapping[str, Input] = IMAGE,
    sizes: tuple[Mapping[str, int], ...] = BATCHES,
) -> Network:
    """Returns a network of transformers on images."""
    return Network(name, "transformers", make, settings, inputs, sizes)


_FRAMES: Final = {"input_features": Input("numbers", ("B", 16, 60))}
_DECODER_IDS: Final = Input("tokens", ("B", "M"))

TRANSFORMERS: Final = (
    text("bert", "TFBertModel:BertConfig", BERT, inputs={**TEXT, "token_type_ids": Input("mask", ("B", "L"))}),
    text("bert-mlm", "TFBertForMaskedLM:BertConfig", BERT),
    text("bert-qa", "TFBertForQuestionAnswering:BertConfig", BERT),
    text(
        "distilbert",
        "TFDistilBertModel:DistilBertConfig",
        {"vocab_size": VOCABULARY, "dim": WIDTH, "n_layers": 2, "n_heads": 4, "hidden_dim": 40},
    ),
    text("gpt2", "TFGPT2LMHeadModel:GPT2Config", _GPT2, arguments={"use_cache": True}),
    text("gpt2-past", "TFGPT2LMHeadModel:GPT2Config", _GPT2, inputs=PAST, past=1, arguments={"use_cache": True}),
    text("t5-encoder", "TFT5EncoderModel:T5Config", _T5),
    text("t5", "TFT5Model:T5Config", _T5, inputs=TWO_TEXTS),
    text("t5-lm", "TFT5ForConditionalGeneration:T5Config", _T5, inputs=TWO_TEXTS, arguments={"use_cache": True}),
    text(
        "t5-decoder",
        "TFT5ForConditionalGeneration:T5Config",
        _T5,
        inputs={"input_ids": _DECODER_IDS, "encoder_hidden_states": STATES, "encoder_attention_mask": MASK},
        method="decoder",
    ),
    text(
        "t5-past",
        "TFT5ForConditionalGeneration:T5Config",
        _T5,
        inputs={"encoder_outputs": STATES, "decoder_input_ids": Input("tokens", ("B", 1))},
        past=4,
        arguments={"use_cache": True},
    ),
    text("bart", "TFBartModel:BartConfig", BART, inputs=TWO_TEXTS),
    text("bart-lm", "TFBartForConditionalGeneration:BartConfig", BART, inputs=TWO_TEXTS),
    text(
        "bart-past",
        "TFBartForConditionalGeneration:BartConfig",
        BART,
        inputs={"encoder_outputs": STATES, "decoder_input_ids": Input("tokens", ("B", 1))},
        past=4,
        arguments={"use_cache": True},
    ),
    Network(
        "whisper",
        "transformers",
        "TFWhisperForConditionalGeneration:WhisperConfig",
        _WHISPER,
        {**_FRAMES, "decoder_input_ids": _DECODER_IDS},
        TEXT_SIZES,
    ),
    Network(
        "whisper-encoder", "transformers", "TFWhisperModel:WhisperConfig", _WHISPER, _FRAMES, BATCHES, method="encoder"
    ),
    Network(
        "whisper-decoder",
        "transformers",
        "TFWhisperModel:WhisperConfig",
        _WHISPER,
        {"input_ids": _DECODER_IDS, "encoder_hidden_states": STATES},
        TEXT_SIZES,
        method="decoder",
    ),
    text(
        "whisper-past",
        "TFWhisperForConditionalGeneration:WhisperConfig",
        _WHISPER,
        inputs={"encoder_outputs": STATES, "decoder_input_ids": Input("tokens", ("B", 1))},
        past=4,
        arguments={"use_cache": True},
    ),
    Network("wav2vec2", "transformers", "TFWav2Vec2Model:Wav2Vec2Config", WAV2VEC2, SOUND, SOUND_SIZES),
    Network(
        "wav2vec2-masked",
        "transformers",
        "TFWav2Vec2Model:Wav2Vec2Config",
        {**WAV2VEC2, "feat_extract_norm": "layer", "do_stable_layer_norm": True},
        {**SOUND, "attention_mask": Input("mask", ("B", "T"))},
        SOUND_SIZES,
    ),
    Network("wav2vec2-ctc", "transformers", "TFWav2Vec2ForCTC:Wav2Vec2Config", WAV2VEC2, SOUND, SOUND_SIZES),
    image("vit", "TFViTModel:ViTConfig", VIT),
    image("vit-classes", "TFViTForImageClassification:ViTConfig", VIT),
    image("swin", "TFSwinModel:SwinConfig", _SWIN),
    image("swin-classes", "TFSwinForImageClassification:SwinConfig", _SWIN),
    image("segformer", "TFSegformerForSemanticSegmentation:SegformerConfig", _SEGFORMER),
    image("segformer-open", "TFSegformerForSemanticSegmentation:SegformerConfig", _SEGFORMER, OPEN_IMAGE, IMAGE_SIZES),
    image("mobilevit", "TFMobileViTModel:MobileViTConfig", _MOBILEVIT),
    image("mobilevit-open", "TFMobileViTModel:MobileViTConfig", _MOBILEVIT, OPEN_IMAGE, IMAGE_SIZES),
    image(
        "mobilevit-segments", "TFMobileViTForSemanticSegmentation:MobileViTConfig", _MOBILEVIT, OPEN_IMAGE, IMAGE_SIZES
    ),
    image("convnext", "TFConvNextModel:ConvNextConfig", _CONVNEXT),
    image("convnext-open", "TFConvNextForImageClassification:ConvNextConfig", _CONVNEXT, OPEN_IMAGE, IMAGE_SIZES),
)
