"""Further networks of Hugging Face's transformers, small and random as those of `hub_table.py`."""

from __future__ import annotations

from typing import Final

from benchmarks.hub_table import (
    BART,
    BATCHES,
    BERT,
    IDS,
    IMAGE,
    IMAGE_SIZES,
    MASK,
    OPEN_IMAGE,
    SOUND,
    SOUND_SIZES,
    TWO_TEXTS,
    VIT,
    VOCABULARY,
    WAV2VEC2,
    WIDTH,
    Input,
    Network,
    image,
    text,
)

_GATED: Final = {"vocab_size": VOCABULARY, "n_positions": 64, "n_embd": WIDTH, "n_layer": 2, "n_head": 4}
_CONTEXT: Final = {"vocab_size": VOCABULARY, "n_positions": 64, "n_embd": WIDTH, "n_layer": 2, "n_head": 4, "dff": 40}
_CLIP: Final = {"hidden_size": WIDTH, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 2}
_POSITIONS: Final = {"pad_token_id": 1}
_PATCHES: Final = {**VIT, "patch_size": 16}

# The networks.
FURTHER: Final = (
    text("albert", "TFAlbertModel:AlbertConfig", {**BERT, "embedding_size": 16}),
    text("electra", "TFElectraModel:ElectraConfig", {**BERT, "embedding_size": 16}),
    text("roberta", "TFRobertaModel:RobertaConfig", {**BERT, **_POSITIONS}),
    text("roberta-prenorm", "TFRobertaPreLayerNormModel:RobertaPreLayerNormConfig", {**BERT, **_POSITIONS}),
    text("mpnet", "TFMPNetModel:MPNetConfig", {**BERT, **_POSITIONS}),
    text("rembert", "TFRemBertModel:RemBertConfig", {**BERT, "input_embedding_size": 16, "output_embedding_size": 16}),
    text("roformer", "TFRoFormerModel:RoFormerConfig", {**BERT, "embedding_size": 16}),
    text(
        "mobilebert",
        "TFMobileBertModel:MobileBertConfig",
        {**BERT, "embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16},
    ),
    text("convbert", "TFConvBertModel:ConvBertConfig", {**BERT, "embedding_size": 16, "num_attention_heads": 4}),
    text(
        "deberta", "TFDebertaModel:DebertaConfig", {**BERT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
    ),
    text(
        "deberta-v2",
        "TFDebertaV2Model:DebertaV2Config",
        {**BERT, "relative_attention": True, "position_buckets": 8, "pos_att_type": ["c2p", "p2c"]},
    ),
    text("esm", "TFEsmModel:EsmConfig", {**BERT, "pad_token_id": 1, "position_embedding_type": "rotary"}),
    text(
        "xlnet",
        "TFXLNetModel:XLNetConfig",
        {"vocab_size": VOCABULARY, "d_model": WIDTH, "n_layer": 2, "n_head": 4, "d_inner": 40},
    ),
    text(
        "xlm",
        "TFXLMModel:XLMConfig",
        {"vocab_size": VOCABULARY, "emb_dim": WIDTH, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64},
    ),
    text(
        "flaubert",
        "TFFlaubertModel:FlaubertConfig",
        {"vocab_size": VOCABULARY, "emb_dim": WIDTH, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64},
    ),
    text("longformer", "TFLongformerModel:LongformerConfig", {**BERT, "attention_window": 4, **_POSITIONS}),
    text("gptj", "TFGPTJForCausalLM:GPTJConfig", {**_GATED, "rotary_dim": 4}),
    text("ctrl", "TFCTRLLMHeadModel:CTRLConfig", _CONTEXT),
    text("openai-gpt", "TFOpenAIGPTLMHeadModel:OpenAIGPTConfig", _GATED),
    text("opt", "TFOPTForCausalLM:OPTConfig", {**BERT, "ffn_dim": 40, "word_embed_proj_dim": WIDTH, "pad_token_id": 1}),
    text(
        "xglm",
        "TFXGLMForCausalLM:XGLMConfig",
        {
            "vocab_size": VOCABULARY,
            "d_model": WIDTH,
            "ffn_dim": 40,
            "num_layers": 2,
            "attention_heads": 4,
            "max_position_embeddings": 64,
        },
    ),
    text("mistral", "TFMistralForCausalLM:MistralConfig", {**BERT, "num_attention_heads": 4, "num_key_value_heads": 2}),
    text("mbart", "TFMBartModel:MBartConfig", BART, inputs=TWO_TEXTS),
    text("marian", "TFMarianModel:MarianConfig", {**BART, "decoder_vocab_size": VOCABULARY}, inputs=TWO_TEXTS),
    text("pegasus", "TFPegasusModel:PegasusConfig", BART, inputs=TWO_TEXTS),
    text("blenderbot", "TFBlenderbotModel:BlenderbotConfig", BART, inputs=TWO_TEXTS),
    text(
        "clip-text",
        "TFCLIPTextModel:CLIPTextConfig",
        {**_CLIP, "vocab_size": VOCABULARY, "eos_token_id": 2, "max_position_embeddings": 64},
    ),
    image("clip-vision", "TFCLIPVisionModel:CLIPVisionConfig", {**_CLIP, "image_size": 64, "patch_size": 16}),
    image("deit", "TFDeiTModel:DeiTConfig", _PATCHES),
    image("data2vec-vision", "TFData2VecVisionModel:Data2VecVisionConfig", _PATCHES),
    image(
        "resnet",
        "TFResNetModel:ResNetConfig",
        {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 1, 1]},
        OPEN_IMAGE,
        IMAGE_SIZES,
    ),
    image(
        "regnet",
        "TFRegNetModel:RegNetConfig",
        {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 1, 1], "groups_width": 8},
        IMAGE,
        BATCHES,
    ),
    image(
        "convnext-v2",
        "TFConvNextV2Model:ConvNextV2Config",
        {"hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 2, 1]},
        OPEN_IMAGE,
        IMAGE_SIZES,
    ),
    image(
        "efficientformer",
        "TFEfficientFormerModel:EfficientFormerConfig",
        {
            "image_size": 64,
            "depths": [1, 1, 1, 2],
            "hidden_sizes": [16, 24, 32, 40],
            "dim": 40,
            "key_dim": 8,
            "num_attention_heads": 2,
            "resolution": 2,
            "num_meta3d_blocks": 1,
        },
    ),
    image(
        "swiftformer",
        "TFSwiftFormerModel:SwiftFormerConfig",
        {"image_size": 64, "depths": [1, 1, 1, 1], "embed_dims": [16, 24, 32, 40]},
    ),
    Network("hubert", "transformers", "TFHubertModel:HubertConfig", WAV2VEC2, SOUND, SOUND_SIZES),
    Network("hubert-ctc", "transformers", "TFHubertForCTC:HubertConfig", WAV2VEC2, SOUND, SOUND_SIZES),
    Network(
        "speech2text",
        "transformers",
        "TFSpeech2TextModel:Speech2TextConfig",
        {
            **BART,
            "num_conv_layers": 2,
            "conv_channels": 32,
            "input_feat_per_channel": 16,
            "input_channels": 1,
            "max_source_positions": 64,
            "max_target_positions": 64,
        },
        {"input_features": Input("numbers", ("B", "L", 16)), "decoder_input_ids": Input("tokens", ("B", "M"))},
        ({"B": 1, "L": 24, "M": 3}, {"B": 2, "L": 31, "M": 5}),
    ),
    text(
        "bert-classes",
        "TFBertForSequenceClassification:BertConfig",
        BERT,
        inputs={"input_ids": IDS, "attention_mask": MASK},
    ),
)
