"""`convert` and its result, and the tools for both: what `import tfconvert` provides."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, ParamSpec

from tfconvert.converter.process.collector import paused
from tfconvert.converter.process.guard import diagnosed
from tfconvert.converter.process.interpreter import with_room
from tfconvert.converter.targets.output_form import Form, form_of
from tfconvert.exporters.output_file import Parts, is_c_source, only_part, places_of, write_parts
from tfconvert.importers.source import Source
from tfconvert.report.report import Report, StageTime
from tfconvert.schema.diagnostics import ConversionError, error, size_text
from tfconvert.schema.files import read_file
from tfconvert.schema.limits import Limits, limited
from tfconvert.settings.options import Options
from tfconvert.settings.quantization import Mode, Quantize, Samples
from tfconvert.settings.setting import shown
from tfconvert.settings.targets import AnyTarget, target_of
from tfconvert.settings.verify_options import Verify, to_verify

if TYPE_CHECKING:
    from tfconvert.converter.ir.interface import Tensor
    from tfconvert.converter.rewrite.pattern import Pattern
    from tfconvert.converter.targets.target import ConvertedFile
    from tfconvert.converter.validation.result_check import Verification
    from tfconvert.tools.bench import Measurement
    from tfconvert.tools.diff import Diff
    from tfconvert.tools.inspection import Inspection
    from tfconvert.tools.model_comparison import Comparison
    from tfconvert.tools.programs import Program
    from tfconvert.tools.view import ViewedModel


class Model:
    """A converted model; it doesn't change any more.

        model.save("model.tflite")
        scores = model(image)

    Weights are still where they were, in the source's files or in variables' memory: saving copies them straight to the
    new file. A model in memory that had to be saved is in a temporary directory, which is removed when this object is
    dropped.

    Attributes:
        report: The report of the conversion.
    """

    # The source last, so that mapped files are closed before a temporary directory is removed.
    __slots__ = ("_file", "_form", "_program", "_report", "_source")

    def __init__(self, file: ConvertedFile, report: Report, source: Source, form: Form) -> None:
        self._file = file
        self._form = form
        self._program: Program | None = None
        self._report = report
        self._source = source

    @property
    def report(self) -> Report:
        """The report of the conversion."""
        return self._report

    @property
    def size(self) -> int:
        """The bytes of the file, and of those beside it."""
        return self._file.size

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of its first signature: names, types and shapes."""
        return self.report.interfaces[0].inputs if self.report.interfaces else ()

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs of its first signature."""
        return self.report.interfaces[0].outputs if self.report.interfaces else ()

    def __call__(self, *values: Any, signature: str = "", **named: Any) -> Any:
        """Runs the model; see `Program.__call__`."""
        return self._running()(*values, signature=signature, **named)

    def predict(self, data: Any, *, batch_size: int = 32, signature: str = "") -> Any:
        """Runs the model on many samples, batch by batch; see `Program.predict`."""
        return self._running().predict(data, batch_size=batch_size, signature=signature)

    def compare(self, other: object, data: Any = None, *, layers: bool = False) -> Comparison:
        """Compares its results with those of another model on the same inputs.

        Args:
            other: The model that it was converted from, or any that `convert` accepts; or another converted model, or
                the path of a `.tflite` file.
            data: The inputs, in any form that samples have; by default a few random ones. A model that was not
                converted runs on the first 32 samples of each signature, because the reference is slow.
            layers: Whether to compare layer by layer, too: where accuracy was lost, and what to do.

        Returns:
            The comparison, which prints as a table.
        """
        return compare(self, other, data, layers=layers)

    def _running(self) -> Program:
        if self._program is None:
            from tfconvert.tools.programs import load_converted

            self._program = load_converted(self._form.target, self.parts, self.report)
        return self._program

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

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


_Arguments = ParamSpec("_Arguments")


def _with_hints(function: Callable[_Arguments, Model]) -> Callable[_Arguments, Model]:
    """Decorates `convert`: an argument that is a setting in another argument raises an error that names its place."""
    known = {"model", *(function.__kwdefaults__ or {})}

    @wraps(function)
    def checked(*args: _Arguments.args, **named: _Arguments.kwargs) -> Model:
        if not known.issuperset(named):
            from tfconvert.settings.data import check_arguments

            check_arguments(name for name in named if name not in known)
        return function(*args, **named)

    return checked


@_with_hints
def convert(
    model: object,
    *,
    quantize: Quantize | Mode | None = None,
    samples: Samples | str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    verify: bool | Verify | Literal["tensorflow"] = False,
    batch: int | None = None,
    input_shapes: Mapping[str, Sequence[int | None]] | None = None,
    signatures: str | Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
    target: Literal["litert", "stablehlo", "iree"] | AnyTarget = "litert",
    args: Sequence[Any] | None = None,
    patterns: Sequence[Pattern[Any] | str | os.PathLike[str]] = (),
    check_passes: bool = False,
    keep_graphs: bool = False,
    limits: Limits | None = None,
) -> Model:
    """Converts a model of TensorFlow or JAX to LiteRT, to StableHLO, or to a program of IREE.

        tfconvert.convert("saved_model").save("model.tflite")
        tfconvert.convert(keras_model, quantize="int8", samples=images, verify=True)

    Args:
        model: A path (SavedModel, `.pb`, `.pbtxt`, `.meta`, `.keras`, `.h5`, `jax.export`, StableHLO, `.mlir`), or in
            memory: a Keras model, TensorFlow functions, a `tf.Module`, a SavedModel or GraphDef message, a function of
            JAX. A `tfconvert.Source` of any of them says more about what to import.
        quantize: `"dynamic"`, `"float16"`, `"int8"`, `"int16"`, `"weights"`, or a `tfconvert.Quantize`.
        samples: Typical inputs for `"int8"` and `"int16"`: an array, arrays by input name, a data set, a list, a
            function that returns one, or files (docs/quantization.md).
        verify: Whether to run the result and compare it with the model, on the samples or on random inputs; a
            `tfconvert.Verify` says how, and `"tensorflow"` that TensorFlow is to compute the model's results.
        batch: The size that replaces the unknown first dimension of every input.
        input_shapes: Shapes by input name; -1 or `None` leaves a dimension as the model has it.
        signatures: SavedModels: the signatures to convert; by default all.
        inputs: The tensors to feed, `x` or `x:0`, in this order; the nodes that compute them are left
            out.
        outputs: The tensors to fetch, in this order; the nodes that use them are left out.
        rename: New names of inputs and outputs, by the names that the model has.
        target: `"litert"`, `"stablehlo"` or `"iree"`; or a `tfconvert.LiteRT`, `tfconvert.StableHLO` or
            `tfconvert.Iree` with the settings that only this target has.
        args: For a function of JAX: examples of its arguments, arrays or `jax.ShapeDtypeStruct`s; one of them alone
            is that of its only argument.
        patterns: Rewrites of your own, from `tfconvert.patterns`, or the Python files or entry points with them.
        check_passes: Whether to run the model before and after each pass on the same random inputs and compare.
        keep_graphs: Whether the report keeps the graphs before and after, for its page (`report.save("report.html")`).
        limits: How much the conversion may make out of the model: `tfconvert.Limits(constant_bytes=1 << 33)`.

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
        target=target_of(target, quantize, samples),
        patterns=patterns,
        verify=to_verify(verify),
        check_passes=check_passes,
        keep_graphs=keep_graphs,
        limits=Limits() if limits is None else limits,
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
    with paused():
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
    if original.prepared is None and source.prepared is not None:
        source.prepared.original = None  # The user decides how long the model itself stays in memory.
    if source is not original:
        stage, notes = source.preparation
        report = report._replace(stages=(StageTime(stage, preparation), *report.stages), notes=(*notes, *report.notes))
    return Model(file, report, source, Form.of(options.target))


def compare(model: object, other: object, data: Any = None, *, layers: bool = False) -> Comparison:
    """Compares the results of two models on the same inputs; see `Model.compare`.

    Args:
        model: A converted model, or the path of a `.tflite` file.
        other: The same, or any model that `convert` accepts.
        data: The inputs, in any form that samples have; by default a few random ones.
        layers: Whether to compare layer by layer, too.
    """
    from tfconvert.tools.model_comparison import compare as compared

    def run() -> Comparison:
        second = other if isinstance(other, Model | Source) or _is_file(other) else Source(other)
        with ExitStack() as end:
            path = _path(model, end)
            if isinstance(second, Source):
                source = second.importable()
                return compared(path, source, data, layers=layers, names=(_name(model), source.name))
            return compared(path, _path(second, end), data, layers=layers, names=(_name(model), _name(second)))

    return diagnosed(run)


def inspect(model: object, **settings: Any) -> Inspection:
    """Describes a model: its contents, whether it will convert, and the result.

    Args:
        model: A converted model, a path, or any model that `convert` accepts.
        settings: Arguments of `convert`; `accelerator=["gpu"]` tells what accelerators take of it.

    Returns:
        The findings, which print as text.
    """
    from tfconvert.settings.data import from_data
    from tfconvert.tools.inspection import inspect as inspected

    def run() -> Inspection:
        selection, options = from_data(settings)
        with ExitStack() as end:
            if isinstance(model, Model):
                return inspected(Source(_path(model, end), **selection), options)._replace(source=_name(model))
            return inspected(Source(model, **selection) if not isinstance(model, Source) else model, options)

    return diagnosed(run)


def verify(
    file: object,
    against: object,
    data: Any = None,
    *,
    min_snr: float | None = None,
    min_agreement: float | None = None,
    compare_layers: bool = False,
) -> Verification:
    """Compares a `.tflite` file of any converter with its model, or what computes its results most independently.

    Args:
        file: Its path, or a converted model.
        against: Any model that `convert` accepts.
        data: The inputs, in any form that samples have; by default random ones that suit the model.
        min_snr: Quantized files: the minimum signal-to-noise ratio, in dB.
        min_agreement: Quantized files: the minimum share (0 to 1) of rows with the same largest element.
        compare_layers: Whether to find the first operator that differs; of quantized files, to list the layers.

    Returns:
        The outcome, which prints as text; `agrees` tells whether all is well.
    """
    from tfconvert.tools.against import check

    def run() -> Verification:
        wanted = Verify(data, min_snr, min_agreement, compare_layers=compare_layers)
        wanted.check()
        source = against if isinstance(against, Source) else Source(against)
        with ExitStack() as end:
            return check(source.importable(), _path(file, end), wanted)

    return diagnosed(run)


def diff(first: object, second: object, data: Any = None, *, latency: bool = False) -> Diff:
    """Returns how two `.tflite` files differ: structure, weights, outputs on the same inputs.

    Args:
        first: A converted model, or the path of a file.
        second: The same.
        data: The inputs, in any form that samples have; by default random ones.
        latency: Whether to measure both.

    Returns:
        The differences, which print as text.
    """
    from tfconvert.tools.diff import diff as differences

    def run() -> Diff:
        with ExitStack() as end:
            found = differences(_path(first, end), _path(second, end), data, latency=latency)
        return found._replace(names=(_name(first), _name(second)))

    return diagnosed(run)


def bench(
    model: object,
    *,
    runs: int = 50,
    threads: int = 1,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    by_operator: bool = True,
) -> Measurement:
    """Measures a `.tflite` file in LiteRT on random inputs: latency, memory, and the time of each operator.

    Args:
        model: A converted model, or the path of a file.
        runs: The number of measured runs.
        threads: The number of threads.
        input_shapes: The shapes of inputs by name; by default the file's, 1 where a size is dynamic.
        by_operator: Whether to measure each operator, too.

    Returns:
        The measurements, which print as text.
    """
    from tfconvert.tools.bench import measure

    def run() -> Measurement:
        with ExitStack() as end:
            path = _path(model, end)
            found = measure(path, runs=runs, threads=threads, shapes=input_shapes, by_operator=by_operator)
        return found._replace(file=_name(model))

    return diagnosed(run)


def view(model: object, other: object = None, *, bench: bool = False, **settings: Any) -> ViewedModel:
    """Returns the page of a model, which a notebook shows: its graph, tensors and weights, and what accelerators take.

    Args:
        model: A converted model, the path of a `.tflite` file, or any model that `convert` accepts: then the page has
            the graph before and after a conversion, or what the conversion fails on.
        other: Another one to show beside it, with the differences marked.
        bench: Whether to measure each operator in LiteRT, to colour the graph by latency.
        settings: Arguments of `convert`.

    Returns:
        The page; `save("model.html")` writes it.
    """
    from tfconvert.settings.data import from_data
    from tfconvert.tools.view import view as viewed

    def shown_as(each: object, selection: Mapping[str, Any], end: ExitStack) -> object:
        if isinstance(each, Model):
            return read_file(_path(each, end))
        return each if each is None or isinstance(each, Source) or _is_file(each) else Source(each, **selection)

    def run() -> ViewedModel:
        selection, options = from_data(settings)
        with ExitStack() as end:
            pair = [shown_as(each, selection, end) for each in (model, other)]
        return viewed(*pair, options=options, bench=bench)

    return diagnosed(run)


def _is_file(model: object) -> bool:
    return isinstance(model, str | os.PathLike) and os.fspath(model).endswith(".tflite")


def _name(model: object) -> str:
    return f"{model.report.source} ({size_text(model.size)})" if isinstance(model, Model) else str(model)


def _path(model: object, end: ExitStack) -> str:
    """Returns the path of a file; that of a converted model is temporary.

    Raises:
        ConversionError: It is neither, or for another target (`wrong-option`).
    """
    if isinstance(model, Model):
        import tempfile

        path = Path(end.enter_context(tempfile.TemporaryDirectory(prefix="tfconvert-"))) / "model.tflite"
        model.save(path)
        return os.fspath(path)
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    hint = "pass what `tfconvert.convert` has returned for LiteRT, or the path of a .tflite file"
    raise error("wrong-option", f"{shown(model)} is not a converted model", hint=hint)
