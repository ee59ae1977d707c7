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
from tfconvert.schema.diagnostics import ConversionError
from tfconvert.schema.limits import Limits, limited
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Mode, Quantize
from tfconvert.settings.targets import AnyTarget, target_of
from tfconvert.settings.verify_options import Verify, to_verify

if TYPE_CHECKING:
    from tfconvert.converter.rewrite.pattern import Pattern
    from tfconvert.converter.targets.target import ConvertedFile


class Model:
    """A converted model; it doesn't change any more.

    Weights are still where they were, in the source's files or in variables' memory: saving copies them straight to the
    new file. A model in memory that had to be saved is in a temporary directory, which is removed when this object is
    dropped.

    Attributes:
        report: The report of the conversion.
    """

    # The source last, so that mapped files are closed before a temporary directory is removed.
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
        """The files of the result: how each is written, by the extension that replaces that of the result's name."""
        return self._file.parts

    def save(self, path: str | os.PathLike[str] | BinaryIO, *, array_name: str | None = None) -> None:
        """Writes the result, and what is beside it; each file appears whole or not at all.

        Args:
            path: Its path, whose extension must not be another target's; or a file that is open for binary writing, or
                anything with such a `write`, which gets the weights a block at a time. With the extension of C or C++
                source (`.cc`, `.c`, `.cpp`) the model becomes an array there, and a header beside it declares the
                array; with that of a header, all is in the header.
            array_name: The array's name; by default `g_` and the file's name without its extension.

        Raises:
            ConversionError: The file can't be written (`output-not-writable`) or is one of the model's own
                (`output-over-input`), or a weight's checksum is wrong (`bad-checksum`); or the extension is another
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
        # Text is of use without the files beside it; nothing else is.
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
    args: Sequence[Any] | None = None,
    target: Literal["litert", "stablehlo", "iree"] | AnyTarget = "litert",
    signatures: str | Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    input_shapes: Mapping[str, Sequence[int | None]] | None = None,
    batch: int | None = None,
    rename: Mapping[str, str] | None = None,
    quantize: Quantize | Mode | None = None,
    patterns: Sequence[Pattern[Any] | str | os.PathLike[str]] = (),
    verify: bool | Verify = False,
    check_passes: bool = False,
    keep_graphs: bool = False,
    limits: Limits = Limits(),  # noqa: B008  # It is a tuple.
) -> Model:
    """Converts a model of TensorFlow or JAX to LiteRT, to StableHLO, or to a program of IREE.

    Args:
        model: A SavedModel directory, a frozen graph (`.pb`, `.pbtxt`), a MetaGraph beside its checkpoint (`.meta`), a
            Keras file (`.keras`, `.h5`), a file of `jax.export`, a StableHLO artifact, or MLIR text (`.mlir`); or, in
            memory, a Keras model, TensorFlow functions, a `tf.Module`, what `tf.saved_model.load` returned, a
            SavedModel or GraphDef message, or an exported or lowered function of JAX. A `tfconvert.Source` of any of
            them says more about what to import: tags, the order of inputs, ...
        args: For a function of JAX: examples of its arguments, arrays or `jax.ShapeDtypeStruct`s, with which
            `jax.export` exports it; symbolic dimensions stay dynamic.
        target: What the model becomes: a file of LiteRT, StableHLO text (`.mlir`), or a program that IREE has compiled
            (`.vmfb`; needs the extra `iree`). A `tfconvert.LiteRT`, `tfconvert.StableHLO` or `tfconvert.Iree` has the
            settings that only this target has.
        signatures: SavedModels: the signature or signatures to convert; by default all of them.
        inputs: The tensors to feed, `x` or `x:0`: what computes them is cut off (docs/interface.md), and the result
            keeps their order. By default a signature's inputs, or a GraphDef's placeholders that the outputs need; one
            with a default is fed only if it is named.
        outputs: The tensors to fetch, in the result's order; what uses them is cut off. By default a signature's
            outputs, or a GraphDef's unused results.
        input_shapes: Shapes by input name; -1 or `None` leaves a dimension as the model has it.
        batch: The size that replaces the unknown first dimension of every input.
        rename: New names of inputs and outputs, by the names that the model has.
        quantize: LiteRT: how to quantize: a mode (`"dynamic"`, `"float16"`, ...) or a `tfconvert.Quantize`; by default,
            not at all.
        patterns: Rewrites of your own, from `tfconvert.patterns`: those that start at `tf` ops run before ops are
            chosen for LiteRT, the others with the converter's own. A path (`"rules.py"`) takes those in a Python file,
            any other string those of the entry point of that name.
        verify: Whether to run the result in LiteRT (needs `ai-edge-litert`), or a program in IREE, and compare it with
            the reference executor, on random inputs that suit the model; the differences, and what can't be compared,
            are in the report. A quantized model is compared with itself without quantization, on the samples if there
            are any: a warning tells if they differ too much. The reference executor runs StableHLO itself. A
            `tfconvert.Verify` says more: inputs, limits, whether to compare layers.
        check_passes: Whether to run the model before and after each pass on the same random inputs and compare.
        keep_graphs: Whether the report keeps the graphs before and after, for its page (`report.save("report.html")`).
        limits: How much the conversion may make out of the model: `Limits(constant_bytes=1 << 33)`.

    Returns:
        The model, not yet written to anywhere.

    Raises:
        ConversionError: The model can't be converted; the error says what, where and what to do.
    """
    named = [signatures] if isinstance(signatures, str) else signatures
    source = model if isinstance(model, Source) else Source(model)
    source = source.selecting(
        args=args,
        signatures=named,
        inputs=inputs,
        outputs=outputs,
        input_shapes=input_shapes,
        batch=batch,
        rename=rename,
    )
    options = Options(
        target=target_of(target, quantize),
        patterns=patterns,
        verify=to_verify(verify),
        check_passes=check_passes,
        keep_graphs=keep_graphs,
        limits=limits,
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

    options = conversion.checked(options)
    start = time.perf_counter()
    on_stage("open")
    original, source = source, source.importable()
    preparation = time.perf_counter() - start
    with limited(options.limits), ExitStack() as undo, ExitStack() as end:
        if original.prepared is None:
            undo.callback(source.discard)
        if options.verify is not None:
            from tfconvert.tools.verification import prepared, verified

            options = end.enter_context(prepared(options))
        file, report = conversion.run(source, options, on_stage)
        if options.verify is not None:
            on_stage("verify")
            try:
                report = verified(source, options, file, report, on_stage)
            except ConversionError as problem:
                problem.report = report._replace(failure=problem) if options.keep_graphs else None
                raise
        undo.pop_all()
    if source is not original:
        stage, notes = source.preparation
        report = report._replace(stages=(StageTime(stage, preparation), *report.stages), notes=(*notes, *report.notes))
    return Model(file, report, source, Form.of(options.target))
