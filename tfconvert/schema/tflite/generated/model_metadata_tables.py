"""Tables and enums of `model_metadata.fbs`; made by `tfconvert.schema.tflite.generate`, not to be edited."""

from typing import Any, Final

ROOT: Final = 'ModelMetadata'

ENUMS: Final[dict[str, dict[str, int]]] = {
    'AssociatedFileType': {
        'UNKNOWN': 0, 'DESCRIPTIONS': 1, 'TENSOR_AXIS_LABELS': 2, 'TENSOR_VALUE_LABELS': 3,
        'TENSOR_AXIS_SCORE_CALIBRATION': 4, 'VOCABULARY': 5, 'SCANN_INDEX_FILE': 6,
    },
    'BoundingBoxType': {'UNKNOWN': 0, 'BOUNDARIES': 1, 'UPPER_LEFT': 2, 'CENTER': 3},
    'ColorSpaceType': {'UNKNOWN': 0, 'RGB': 1, 'GRAYSCALE': 2},
    'ContentProperties': {
        'NONE': 0, 'FeatureProperties': 1, 'ImageProperties': 2, 'BoundingBoxProperties': 3, 'AudioProperties': 4,
    },
    'CoordinateType': {'RATIO': 0, 'PIXEL': 1},
    'ProcessUnitOptions': {
        'NONE': 0, 'NormalizationOptions': 1, 'ScoreCalibrationOptions': 2, 'ScoreThresholdingOptions': 3,
        'BertTokenizerOptions': 4, 'SentencePieceTokenizerOptions': 5, 'RegexTokenizerOptions': 6,
    },
    'ScoreTransformationType': {'IDENTITY': 0, 'LOG': 1, 'INVERSE_LOGISTIC': 2},
}

# name -> fields: name, slot, kind, default, enum or table, alignment
TABLES: Final[dict[str, tuple[tuple[str, int, str, Any, str, int], ...]]] = {
    'AssociatedFile': (
        ('name', 0, 'string', 0, '', 0), ('description', 1, 'string', 0, '', 0),
        ('type', 2, 'byte', 0, 'AssociatedFileType', 0), ('locale', 3, 'string', 0, '', 0),
        ('version', 4, 'string', 0, '', 0),
    ),
    'AudioProperties': (('sample_rate', 0, 'uint', 0, '', 0), ('channels', 1, 'uint', 0, '', 0)),
    'BertTokenizerOptions': (('vocab_file', 0, '[table]', 0, 'AssociatedFile', 0),),
    'BoundingBoxProperties': (
        ('index', 0, '[uint]', 0, '', 0), ('type', 1, 'byte', 0, 'BoundingBoxType', 0),
        ('coordinate_type', 2, 'byte', 0, 'CoordinateType', 0),
    ),
    'Content': (
        ('content_properties_type', 0, 'utype', 0, 'ContentProperties', 0),
        ('content_properties', 1, 'union', 0, 'ContentProperties', 0), ('range', 2, 'table', 0, 'ValueRange', 0),
    ),
    'CustomMetadata': (('name', 0, 'string', 0, '', 0), ('data', 1, '[ubyte]', 0, '', 16)),
    'FeatureProperties': (),
    'ImageProperties': (
        ('color_space', 0, 'byte', 0, 'ColorSpaceType', 0), ('default_size', 1, 'table', 0, 'ImageSize', 0),
    ),
    'ImageSize': (('width', 0, 'uint', 0, '', 0), ('height', 1, 'uint', 0, '', 0)),
    'ModelMetadata': (
        ('name', 0, 'string', 0, '', 0), ('description', 1, 'string', 0, '', 0), ('version', 2, 'string', 0, '', 0),
        ('subgraph_metadata', 3, '[table]', 0, 'SubGraphMetadata', 0), ('author', 4, 'string', 0, '', 0),
        ('license', 5, 'string', 0, '', 0), ('associated_files', 6, '[table]', 0, 'AssociatedFile', 0),
        ('min_parser_version', 7, 'string', 0, '', 0),
    ),
    'NormalizationOptions': (('mean', 0, '[float]', 0, '', 0), ('std', 1, '[float]', 0, '', 0)),
    'ProcessUnit': (
        ('options_type', 0, 'utype', 0, 'ProcessUnitOptions', 0), ('options', 1, 'union', 0, 'ProcessUnitOptions', 0),
    ),
    'RegexTokenizerOptions': (
        ('delim_regex_pattern', 0, 'string', 0, '', 0), ('vocab_file', 1, '[table]', 0, 'AssociatedFile', 0),
    ),
    'ScoreCalibrationOptions': (
        ('score_transformation', 0, 'byte', 0, 'ScoreTransformationType', 0),
        ('default_score', 1, 'float', 0.0, '', 0),
    ),
    'ScoreThresholdingOptions': (('global_score_threshold', 0, 'float', 0.0, '', 0),),
    'SentencePieceTokenizerOptions': (
        ('sentencepiece_model', 0, '[table]', 0, 'AssociatedFile', 0),
        ('vocab_file', 1, '[table]', 0, 'AssociatedFile', 0),
    ),
    'Stats': (('max', 0, '[float]', 0, '', 0), ('min', 1, '[float]', 0, '', 0)),
    'SubGraphMetadata': (
        ('name', 0, 'string', 0, '', 0), ('description', 1, 'string', 0, '', 0),
        ('input_tensor_metadata', 2, '[table]', 0, 'TensorMetadata', 0),
        ('output_tensor_metadata', 3, '[table]', 0, 'TensorMetadata', 0),
        ('associated_files', 4, '[table]', 0, 'AssociatedFile', 0),
        ('input_process_units', 5, '[table]', 0, 'ProcessUnit', 0),
        ('output_process_units', 6, '[table]', 0, 'ProcessUnit', 0),
        ('input_tensor_groups', 7, '[table]', 0, 'TensorGroup', 0),
        ('output_tensor_groups', 8, '[table]', 0, 'TensorGroup', 0),
        ('custom_metadata', 9, '[table]', 0, 'CustomMetadata', 0),
    ),
    'TensorGroup': (('name', 0, 'string', 0, '', 0), ('tensor_names', 1, '[string]', 0, '', 0)),
    'TensorMetadata': (
        ('name', 0, 'string', 0, '', 0), ('description', 1, 'string', 0, '', 0),
        ('dimension_names', 2, '[string]', 0, '', 0), ('content', 3, 'table', 0, 'Content', 0),
        ('process_units', 4, '[table]', 0, 'ProcessUnit', 0), ('stats', 5, 'table', 0, 'Stats', 0),
        ('associated_files', 6, '[table]', 0, 'AssociatedFile', 0),
    ),
    'ValueRange': (('min', 0, 'int', 0, '', 0), ('max', 1, 'int', 0, '', 0)),
}
