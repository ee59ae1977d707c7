"""`convert` and its result: what `import tfconvert` provides."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from tfconvert.converter.process.guard import diagnosed
from tfconvert.converter.process.interpreter import with_room
from tfconvert.converter.targets.output_form import Form, form_of
from tfconvert.exporters.output_file import Parts, is_c_source, only_part, places_of, write_parts
from tfconvert.importers.source import Source
from tfconvert.report.report import Report, StageTime
from tfconvert.schema.limits import Limits, limited
from tfconvert.settings.options import Options

if TYPE_CHECKING:
    from tfconvert.converter.composites.fusion import Fusion
    from tfconvert.converter.rewrite.pattern import Pattern
    from tfconvert.converter.target import ConvertedFile
    from tfconvert.settings.iree_options import IreeOptions
    from tfconvert.settings.quantization import Quantize
    from tfconvert.settings.quantization_choices import Mode
    from tfconvert.settings.verify_options import Verify


class Model:
    """A converted model; it doesn't change any more.

    Weights are still where they were, in the source's files: saving copies them straight to the new file. Those of a
    model in memory were written to a temporary folder, which is removed when this object is dropped.

    Attributes:
        report: The report of the conversion.
    """

    # The source last, so that mapped files are closed before a temporary folder is removed.
    __slots__ = ("_file", "_form", "_report", "_source")

    def __init__(self, file: ConvertedFile, report: Report, source: Source, form: Form) -> None:
        self._file = file
        self._form = form
        self._report = report
        self._source = source

    @property
    def report(self) -> Report:
        """The report of the conversion."""
        return self._report

    @property
    def parts(self) -> Parts:
        """The files of the result: how each is written, by the ending that replaces that of the result's name."""
        return self._file.parts

    def save(self, path: str | os.PathLike[str] | BinaryIO, *, array_name: str | None = None) -> None:
        """Writes the result, and what is beside it; each file appears whole or not at all.

        Args:
            path: Its path, whose ending must not be another target's; or a file that is open for binary writing, or
                anything with such a `write`, which gets the weights a block at a time. With the ending of C or C++
                source (`.cc`, `.c`, `.cpp`) the model becomes an array there, and a header beside it declares the
                array; with that of a header, all is in the header.
            array_name: The array's name; by default `g_` and the file's name without its ending.

        Raises:
            ConversionError: The file can't be written (`output-not-writable`) or is one of the model's own
                (`output-over-input`), or a weight's checksum is wrong (`bad-checksum`); or the ending is another
                target's, or there are files beside the result, which need a path (`wrong-option`).
        """
        diagnosed(lambda: self._save(path, array_name))

    def _save(self, path: str | os.PathLike[str] | BinaryIO, array_name: str | None) -> None:
        if isinstance(path, str | os.PathLike):
            for place in places_of(path, self.parts):
                self._source.check_output(place)
            form_of(path, self._form._asdict())
            if is_c_source(path):
                from tfconvert.exporters.c_array import c_array

                c_array(path, array_name).save(self._file.size, only_part(self.parts))
            else:
                write_parts(path, self.parts)
        else:
            only_part(self.parts)(path)

    def __bytes__(self) -> bytes:
        stream = io.BytesIO()
        # A text can be read by itself, whoever has what its arguments are; nothing else is of use in part.
        write = self.parts[""] if self._form == Form("stablehlo") else only_part(self.parts)
        diagnosed(lambda: write(stream))
        return stream.getvalue()

    def __len__(self) -> int:
        return self._file.size

    def __repr__(self) -> str:
        return f"<tfconvert.Model of {self.report.source}: {self.report.size} bytes>"


def convert(
    model: object,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int | None]] | None = None,
    signatures: str | Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    allow_custom_ops: bool = False,
    patterns: Sequence[Pattern[Any] | str | os.PathLike[str]] = (),
    composites: Sequence[Fusion | str | os.PathLike[str]] = (),
    recurrent: Literal["auto", "fused", "loop", "unrolled"] = "auto",
    quantize: Quantize | Mode | None = None,
    verify: bool | Verify = False,
    check_passes: bool = False,
    asset_root: str | os.PathLike[str] | None = None,
    metadata: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    target_runtime: str = "",
    keep_graphs: bool = False,
    verify_data: Any = None,
    compare_layers: bool = False,
    allow_flex: bool = False,
    flex_ops: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    batch: int | None = None,
    order: Literal["written", "official", "official-v1", "flattened"] = "written",
    follow_links: bool = False,
    limits: Limits = Limits(),  # noqa: B008  # It is a tuple.
    op_defs: object = None,
    target: Literal["litert", "stablehlo", "iree"] = "litert",
    mlir_weights: Literal["resource", "inline", "arguments"] = "resource",
    mlir_state: Literal["globals", "arguments"] = "globals",
    iree: IreeOptions | None = None,
    mlir_shape_function: bool = False,
    mlir_artifact: bool = False,
    names: Literal["signature", "official"] = "signature",
) -> Model:
    """Converts a TensorFlow model to LiteRT, to a text of StableHLO, or to a program of IREE.

    Args:
        model: A SavedModel folder, a frozen graph (`.pb`, `.pbtxt`), a MetaGraph beside its checkpoint (`.meta`), a
            Keras file (`.keras`, `.h5`), or MLIR text (`.mlir`); or, in memory, a Keras model, TensorFlow functions, a
            `tf.Module`, what `tf.saved_model.load` returned, or a SavedModel or GraphDef message.
        inputs: The tensors to feed, `x` or `x:0`: what lies before them is cut off (docs/interface.md), and the result
            keeps their order. By default a signature's inputs, or a GraphDef's placeholders that the outputs need; one
            with a default is fed only if it is named.
        outputs: The tensors to fetch, in the result's order; what lies behind them is cut off. By default a signature's
            outputs, or a GraphDef's unused results.
        input_shapes: Shapes by input name; -1 or `None` leaves a dimension as the model has it.
        signatures: SavedModels: the signature or signatures to convert, every one by default.
        tags: SavedModels: the tags of the graph to convert, `serve` by default.
        checkpoint: SavedModel messages: the path of the checkpoint of its variables, without its files' endings.
        allow_custom_ops: Whether an op without a builtin becomes a custom op instead of an error.
        patterns: Rewrites of your own, from `tfconvert.patterns`: those that start at `tf` ops run before ops are
            chosen for LiteRT, the others with the converter's own. A path (`"rules.py"`) takes those in a Python file,
            any other text those of the entry point of that name.
        composites: Fusions of your own, from `tfconvert.composites`, for functions that declare what they implement
            (`experimental_implements`), or for functions by name; they go before the converter's. Also by path or name.
        recurrent: What recurrent layers become: `"fused"`, LiteRT's operators for whole sequences, where they can;
            `"loop"`, loops of small operators; `"unrolled"`, up to 64 steps without a loop, which all accelerators
            know; by default what LiteRT is faster with for their sizes. Functions that are marked as layers become
            operators by default as well.
        quantize: How to quantize: a mode (`"dynamic"`, `"float16"`, ...) or a `Quantize`; by default, not at all.
        verify: Whether to run the result in LiteRT (needs `ai-edge-litert`), or a program in IREE, and compare it with
            the reference executor, on random inputs that suit the model; the differences, and what can't be compared,
            are in the report. A quantized model is compared with itself without quantization, on the samples if there
            are any: a warning tells if they differ too much. The reference executor runs a text of StableHLO itself. A
            `tfconvert.Verify` says more: inputs, limits, whether to compare layers.
        check_passes: Whether to run the model's IR before and after each pass on the same random inputs and compare.
        asset_root: MLIR text: the folder below which it may name files, which are then read; none by default.
        metadata: What the file says about its inputs and outputs, as labels: a file or a mapping (docs/metadata.md).
        target_runtime: The release of the runtime that is to run the file, as `2.14`; newer operators are errors.
        keep_graphs: Whether the report keeps the graphs before and after, for its page (`report.save("report.html")`).
        verify_data: Short for `verify=Verify(data=...)`.
        compare_layers: Short for `verify=Verify(compare_layers=True)`.
        allow_flex: Whether an op without a builtin becomes a flex op, which TensorFlow's own kernel computes, instead
            of an error: the app then needs the Flex delegate (Select TF ops). Flex ops go before custom ops.
        flex_ops: Names, or patterns of names (`"Acme*"`), of ops that your Flex delegate takes beside the usual ones.
        rename: New names of inputs and outputs, by the names that the model has.
        batch: The size that replaces every input's unknown first dimension.
        order: SavedModels: the order of inputs and outputs: the function's, or that of TensorFlow's own converters.
        follow_links: Whether links in the model's folder may lead out of it; only for models that you trust.
        limits: How much the conversion may make out of the model: `Limits(constant_bytes=1 << 33)`.
        op_defs: Definitions of custom ops that a GraphDef uses: the path of an OpList, text or binary, or the message.
        target: What the model becomes: a file of LiteRT, a text of StableHLO (`.mlir`), or a program that IREE has
            compiled (`.vmfb`; needs the extra `iree`), whose weights are saved beside it (`.safetensors`).
        mlir_weights: StableHLO: where the text has its weights: as resources at its end, inline, where they are used,
            or as the last arguments of each function, with a file of their values beside it (`.safetensors`).
        mlir_state: StableHLO: where variables that the model changes are: `"globals"` of the module, or the caller's,
            who gives them as the last `"arguments"` of each function and gets them back as its last results.
        iree: IREE: how to compile, a `tfconvert.IreeOptions`; by default for any processor of this machine's kind.
        mlir_shape_function: StableHLO: add a function `main__shape` that returns the sizes of `main`'s results from
            those of its arguments, wherever these tell them.
        mlir_artifact: StableHLO: a portable artifact (`.mlirbc`) instead of a text, which later releases of StableHLO's
            libraries read, too; it needs the extra `artifact`, and has weights inline or as arguments.
        names: What the tensors of a LiteRT file are called: inputs and outputs as in their signature, or all as
            TensorFlow's own converter calls them (`serving_default_x:0`, `StatefulPartitionedCall:0`), for scripts that
            look for that. Signatures are the same.

    Returns:
        The model, not yet written to anywhere.

    Raises:
        ConversionError: The model can't be converted; the error says what, where and what to do.
    """
    if isinstance(quantize, str):
        from tfconvert.settings.quantization import Quantize

        quantize = Quantize(quantize)
    verification = None
    if (verify is not False and verify is not None) or verify_data is not None or compare_layers is not False:
        from tfconvert.settings.verify_options import to_verify

        verification = to_verify(verify, verify_data, compare_layers)
    signatures = [signatures] if isinstance(signatures, str) else signatures
    source = Source(model, signatures, tags, inputs, outputs, input_shapes, checkpoint, asset_root)
    source = source._replace(rename=rename, batch=batch, order=order, follow_links=follow_links, op_defs=op_defs)
    options = Options(
        allow_custom_ops,
        verification,
        False,
        check_passes,
        patterns,
        composites,
        recurrent,
        quantize,
        metadata=metadata,
        target_runtime=target_runtime,
        keep_graphs=keep_graphs,
        allow_flex=allow_flex,
        flex_ops=flex_ops,
        limits=limits,
        target=target,
        mlir_weights=mlir_weights,
        mlir_state=mlir_state,
        iree=iree,
        mlir_shape_function=mlir_shape_function,
        mlir_artifact=mlir_artifact,
        names=names,
    )
    return convert_source(source, options)


@with_room
def convert_source(source: Source, options: Options, on_stage: Callable[[str], None] = lambda name: None) -> Model:
    """Converts a model with what to import of it and the settings in one object each; see `convert`.

    Args:
        source: The model, and what to import of it.
        options: The settings.
        on_stage: Called with each stage's name before it runs.
    """
    return diagnosed(lambda: _converted(source, options, on_stage))


def _converted(source: Source, options: Options, on_stage: Callable[[str], None]) -> Model:
    from tfconvert import conversion
    from tfconvert.settings.arguments import check_arguments

    check_arguments(source, options)
    options = conversion.resolved(options)
    conversion.check_options(options)
    start = time.perf_counter()
    on_stage("open")
    original, source = source, source.on_disk()
    saved = StageTime("save", time.perf_counter() - start)
    with limited(options.limits), ExitStack() as undo, ExitStack() as end:
        if original.temporary is None:
            undo.callback(source.discard)
        if options.verify is not None:
            from tfconvert.tools.verification import prepared, verified

            options = end.enter_context(prepared(options))
        file, report = conversion.run(source, options, on_stage)
        if options.verify is not None:
            on_stage("verify")
            report = verified(source, options, file, report, on_stage)
        undo.pop_all()
    if source is not original:
        report = report._replace(stages=(saved, *report.stages))
    return Model(file, report, source, Form(options.target, options.mlir_artifact))
