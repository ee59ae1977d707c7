#!/usr/bin/env bash
# LiteRT 2.3.0 loads operators with the fused activation TANH, which its schema has, and computes them without it.
# Guess before the run: TANH is applied, or the file is refused when it is loaded. Seen: ADD, SUB, MUL and CONV_2D run and
# return the bare sum, difference, product and convolution; FULLY_CONNECTED refuses it.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" --disable-pip-version-check install --quiet \
    ai-edge-litert==2.3.0 flatbuffers==25.12.19 numpy==2.2.6 2>"$scratch/pip" || { cat "$scratch/pip" >&2; exit 1; }
cat >"$scratch/run.py" <<'END'
import importlib.metadata
import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

B, A = schema.BuiltinOperator, schema.ActivationFunctionType


def model(code, kind, options, inputs, constants, output):
    """Returns a file with one operator."""
    file, graph = schema.ModelT(), schema.SubGraphT()
    file.version, file.buffers = 3, [schema.BufferT()]
    graph.tensors = []
    for value in (*inputs, *constants, output):
        tensor = schema.TensorT()
        tensor.shape, tensor.type, tensor.name = list(value.shape), schema.TensorType.FLOAT32, f"t{len(graph.tensors)}"
        tensor.buffer = 0
        if any(value is each for each in constants):
            tensor.buffer = len(file.buffers)
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(value.tobytes(), np.uint8)
            file.buffers.append(buffer)
        graph.tensors.append(tensor)
    last = len(graph.tensors) - 1
    graph.inputs, graph.outputs = list(range(len(inputs))), [last]
    call, entry = schema.OperatorT(), schema.OperatorCodeT()
    entry.builtinCode, entry.deprecatedBuiltinCode, entry.version = code, min(code, 127), 1
    call.opcodeIndex, call.inputs, call.outputs = 0, list(range(last)), [last]
    call.builtinOptionsType, call.builtinOptions = kind, options
    options.fusedActivationFunction = A.TANH
    graph.operators, file.subgraphs, file.operatorCodes = [call], [graph], [entry]
    builder = flatbuffers.Builder()
    builder.Finish(file.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def run(content, inputs):
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


x, y = np.array([[3, -2]], np.float32), np.array([[1, 4]], np.float32)
image, kernel, bias = np.full((1, 1, 1, 1), 3, np.float32), np.full((1, 1, 1, 1), 2, np.float32), np.zeros(1, np.float32)
conv = schema.Conv2DOptionsT()
conv.strideW = conv.strideH = conv.dilationWFactor = conv.dilationHFactor = 1
dense = schema.FullyConnectedOptionsT()
O = schema.BuiltinOptions
CASES = {
    "ADD": (B.ADD, O.AddOptions, schema.AddOptionsT(), [x, y], [], x + y),
    "SUB": (B.SUB, O.SubOptions, schema.SubOptionsT(), [x, y], [], x - y),
    "MUL": (B.MUL, O.MulOptions, schema.MulOptionsT(), [x, y], [], x * y),
    "CONV_2D": (B.CONV_2D, O.Conv2DOptions, conv, [image], [kernel, bias], image * 2),
    "FULLY_CONNECTED": (B.FULLY_CONNECTED, O.FullyConnectedOptions, dense, [x], [y], x @ y.T),
}
print("ai-edge-litert", importlib.metadata.version("ai-edge-litert"))
seen = {}
for name, (code, kind, options, inputs, constants, bare) in CASES.items():
    try:
        result = run(model(code, kind, options, inputs, constants, bare), inputs)
    except (RuntimeError, ValueError) as problem:
        seen[name] = "refused"
        print(name, "with TANH: refused:", str(problem).splitlines()[0][:90])
        continue
    without, applied = np.allclose(result, bare), np.allclose(result, np.tanh(bare))
    seen[name] = "without" if without else "applied" if applied else "neither"
    print(name, "with TANH:", result.ravel().tolist(), "bare:", bare.ravel().tolist(), "->", seen[name])
expected = {"ADD": "without", "SUB": "without", "MUL": "without", "CONV_2D": "without", "FULLY_CONNECTED": "refused"}
sys.exit(seen != expected)
END
"$scratch/venv/bin/python" "$scratch/run.py"
