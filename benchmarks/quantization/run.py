"""Runs a .tflite file of any quantization in LiteRT; its answers are floats, whatever its outputs are.

    python -m benchmarks.quantization.run answers xnnpack MODEL.tflite TEST.npz ANSWERS.npy
    python -m benchmarks.quantization.run answers builtin MODEL.tflite TEST.npz ANSWERS.npy --logits
    python -m benchmarks.quantization.run times TEST.npz MODEL.tflite...

A file that crashes the runtime is a failure of that file alone: `answers` and `times` run all this in processes of
their own.

A quantized SOFTMAX has steps of 1/256, so that a thousand random classes all get zero. What the network computed is
then seen in the input of its last SOFTMAX alone: the logits.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final, Literal

import flatbuffers
import numpy as np

from benchmarks.commands import parser_of, run
from benchmarks.litert import SIGNATURE, latencies
from tfconvert.schema.tflite.reader import read_model

Kernels = Literal["xnnpack", "builtin"]

# `xnnpack`: the default, in which a delegate takes what it can; `builtin`: LiteRT's own kernels only.
KERNELS: Final[tuple[Kernels, ...]] = ("xnnpack", "builtin")


def show_logits(file: bytes) -> bytes:
    """Returns a .tflite file whose first output is its last SOFTMAX's input.

    Raises:
        ValueError: The file has no SOFTMAX.
    """
    from ai_edge_litert import schema_py_generated as schema

    # Changing the file in place would not do: equal lists of tensors may be stored once.
    model = schema.ModelT.InitFromPackedBuf(file, 0)
    graph = model.subgraphs[0]
    found = [
        operator.inputs[0]
        for operator in graph.operators
        if model.operatorCodes[operator.opcodeIndex].builtinCode == schema.BuiltinOperator.SOFTMAX
    ]
    if not found:
        raise ValueError("there is no SOFTMAX")
    graph.outputs = [found[-1], *graph.outputs[1:]]
    # Signatures name outputs by their tensors; several may share the graph.
    for signature in model.signatureDefs:
        signature.outputs[0].tensorIndex = found[-1]
    builder = flatbuffers.Builder(len(file))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def quantized(values: np.ndarray, detail: dict[str, Any]) -> np.ndarray:
    """Returns an input as the tensor stores it."""
    scale, zero = detail["quantization"]
    if not scale:
        stored: np.ndarray = values
    else:
        limits = np.iinfo(detail["dtype"])
        stored = np.clip(np.round(values / scale) + zero, limits.min, limits.max)
    return stored.astype(detail["dtype"], copy=False)


def dequantized(values: np.ndarray, detail: dict[str, Any]) -> np.ndarray:
    """Returns the real numbers that an output represents."""
    scale, zero = detail["quantization"]
    numbers = values.astype(np.float32)
    return (numbers - zero) * np.float32(scale) if scale else numbers


class Network:
    """A file in an interpreter with one thread.

    Attributes:
        inputs: Details of its inputs by the names of the signature.
    """

    def __init__(self, file: bytes, kernels: Kernels) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        default, own = OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        resolver = default if kernels == "xnnpack" else own
        self._file = file
        self._interpreter = Interpreter(model_content=file, num_threads=1, experimental_op_resolver_type=resolver)
        details = {detail["index"]: detail for detail in self._interpreter.get_input_details()}
        runner = self._interpreter.get_signature_runner(SIGNATURE)
        self.inputs = {name: details[each["index"]] for name, each in runner.get_input_details().items()}

    def set(self, sample: dict[str, np.ndarray]) -> None:
        """Sets the inputs, and their shapes."""
        shapes = {name: list(detail["shape"]) for name, detail in self.inputs.items()}
        for name, array in sample.items():
            if shapes[name] != list(array.shape):
                self._interpreter.resize_tensor_input(self.inputs[name]["index"], list(array.shape))
                self.inputs[name]["shape"] = np.array(array.shape)
        self._interpreter.allocate_tensors()
        for name, array in sample.items():
            self._interpreter.set_tensor(self.inputs[name]["index"], quantized(array, self.inputs[name]))

    def run(self) -> dict[str, np.ndarray]:
        """Runs it on what is set, from its first state, and returns the first output by its name."""
        self._interpreter.reset_all_variables()
        self._interpreter.invoke()
        detail = self._interpreter.get_output_details()[0]
        return {detail["name"]: dequantized(self._interpreter.get_tensor(detail["index"]), detail)}


def _sample(test: Path, index: int) -> dict[str, np.ndarray]:
    with np.load(test) as stored:
        return {name: stored[name][index : index + 1] for name in stored.files}


def answers_here(model: Path, test: Path, kernels: Kernels, has_logits: bool) -> np.ndarray:
    """Runs a file in this process on all samples, one by one."""
    file = model.read_bytes()
    network = Network(show_logits(file) if has_logits else file, kernels)
    with np.load(test) as stored:
        arrays = {name: stored[name] for name in stored.files}
    results: list[np.ndarray] = []
    for index in range(min(map(len, arrays.values()))):
        network.set({name: array[index : index + 1] for name, array in arrays.items()})
        results += network.run().values()
    return np.concatenate(results)


def times_here(models: list[Path], test: Path, seconds: float) -> list[float]:
    """Returns the median seconds of an inference of each file, timed in turns in this process."""
    networks = [Network(model.read_bytes(), "xnnpack") for model in models]
    for network in networks:
        network.set(_sample(test, 0))
    return latencies([network.run for network in networks], {}, seconds)


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.quantization.run", *arguments]
    try:
        return run(command).stdout
    except RuntimeError as problem:
        raise RuntimeError(f"LiteRT: {problem}") from None


def answers(model: Path, test: Path, kernels: Kernels, has_logits: bool, target: Path) -> np.ndarray:
    """Runs a file in a process of its own.

    Args:
        model: The file.
        test: Inputs by name, the first axis counts the samples.
        kernels: What runs it.
        has_logits: Whether to return the last SOFTMAX's inputs in place of the first output.
        target: Where the process leaves the answers.

    Raises:
        RuntimeError: LiteRT refuses the file or crashes on it.
    """
    _run("answers", kernels, str(model), str(test), str(target), *(["--logits"] if has_logits else []))
    result: np.ndarray = np.load(target)
    return result


def times(models: list[Path], test: Path, seconds: float) -> list[float]:
    """Returns the median seconds of an inference of each file, timed in turns in a process of its own.

    Raises:
        RuntimeError: LiteRT refuses a file or crashes on it.
    """
    output = _run("times", str(test), *map(str, models), "--seconds", str(seconds))
    return [float(each) for each in json.loads(output.splitlines()[-1])]


def operators_on_constants(model: Path, kind: str) -> int:
    """Returns how many operators of a kind have a constant as their first input; the runtime folds them at once."""
    file = read_model(model.read_bytes())
    buffers = file["buffers"]
    codes = [code.name("builtin_code") for code in file["operator_codes"] or ()]

    def has_data(buffer: Any) -> bool:
        return bool(buffer["data"] is not None and len(buffer["data"])) or bool(buffer["size"])

    return sum(
        has_data(buffers[graph["tensors"][operator["inputs"][0]]["buffer"]])
        for graph in file["subgraphs"]
        for operator in graph["operators"] or ()
        if codes[operator["opcode_index"]] == kind
    )


def reduced_tensors(model: Path) -> int:
    """Returns how many tensors have quantized elements, or floats of 16 bits."""
    tensors = [tensor for graph in read_model(model.read_bytes())["subgraphs"] for tensor in graph["tensors"]]

    def is_reduced(tensor: Any) -> bool:
        quantization = tensor["quantization"]
        has_scale = quantization is not None and quantization["scale"] is not None and len(quantization["scale"]) > 0
        return tensor.name("type") == "FLOAT16" or has_scale

    return sum(map(is_reduced, tensors))


def main() -> None:
    """Runs the command line."""
    parser = parser_of("quantization.run", __doc__)
    kinds = parser.add_subparsers(dest="what", required=True)
    answering = kinds.add_parser("answers", help="write a file's answers")
    answering.add_argument("kernels", choices=KERNELS)
    answering.add_argument("model", type=Path)
    answering.add_argument("test", type=Path)
    answering.add_argument("target", type=Path)
    answering.add_argument("--logits", action="store_true", help="of the last SOFTMAX")
    timing = kinds.add_parser("times", help="print seconds of an inference")
    timing.add_argument("test", type=Path)
    timing.add_argument("models", type=Path, nargs="+")
    timing.add_argument("--seconds", type=float, default=2.0, help="default: %(default)s")
    options = parser.parse_args()
    if options.what == "times":
        print(json.dumps(times_here(options.models, options.test, options.seconds)))
    else:
        result = answers_here(options.model, options.test, options.kernels, options.logits)
        np.save(options.target, result)


if __name__ == "__main__":
    main()
