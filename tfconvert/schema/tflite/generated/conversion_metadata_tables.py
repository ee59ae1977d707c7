"""Tables and enums of `conversion_metadata.fbs`; made by `tfconvert.schema.tflite.generate`, not to be edited."""

from typing import Any, Final

ROOT: Final = 'ConversionMetadata'

ENUMS: Final[dict[str, dict[str, int]]] = {
    'ModelOptimizationMode': {
        'PTQ_FLOAT16': 1001, 'PTQ_DYNAMIC_RANGE': 1002, 'PTQ_FULL_INTEGER': 1003, 'PTQ_INT16': 1004,
        'QUANTIZATION_AWARE_TRAINING': 2000, 'RANDOM_SPARSITY': 3001, 'BLOCK_SPARSITY': 3002,
        'STRUCTURED_SPARSITY': 3003,
    },
    'ModelType': {
        'NONE': 0, 'TF_SAVED_MODEL': 1, 'KERAS_MODEL': 2, 'TF_CONCRETE_FUNCTIONS': 3, 'TF_GRAPH_DEF': 4,
        'TF_SESSION': 5, 'JAX': 6, 'PYTORCH': 7,
    },
}

# name -> fields: name, slot, kind, default, enum or table, alignment
TABLES: Final[dict[str, tuple[tuple[str, int, str, Any, str, int], ...]]] = {
    'ConversionMetadata': (
        ('environment', 0, 'table', 0, 'Environment', 0), ('options', 1, 'table', 0, 'ConversionOptions', 0),
    ),
    'ConversionOptions': (
        ('model_optimization_modes', 0, '[int]', 0, 'ModelOptimizationMode', 0),
        ('allow_custom_ops', 1, 'bool', False, '', 0), ('enable_select_tf_ops', 2, 'bool', False, '', 0),
        ('force_select_tf_ops', 3, 'bool', False, '', 0),
        ('sparsity_block_sizes', 4, '[table]', 0, 'SparsityBlockSize', 0),
    ),
    'Environment': (
        ('tensorflow_version', 0, 'string', 0, '', 0), ('api_version', 1, 'uint', 0, '', 0),
        ('model_type', 2, 'int', 0, 'ModelType', 0), ('model_hash', 3, 'ulong', 0, '', 0),
    ),
    'SparsityBlockSize': (('values', 0, '[uint]', 0, '', 0),),
}
