"""Models with open sizes on their way into IREE: TensorFlow's own ways and ours, side by side, as a table of the docs.

python -m benchmarks.tensorflow_to_iree [--write]

It needs TensorFlow and the extra `iree`. A way has worked if the program gives TensorFlow's numbers at all five sizes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.open_models import MODELS, OpenModel
from tfconvert.converter.targets.iree import compiler
from tfconvert.settings.targets import Iree

PAGE = Path(__file__).parents[1] / "docs" / "compile.md"
BEGIN = "<!-- the table of python -m benchmarks.tensorflow_to_iree -->\n"
END = "<!-- its end -->\n"

_EXPORT = """\
import sys
from tensorflow.compiler.mlir.tensorflow_to_stablehlo.python import pywrap_tensorflow_to_stablehlo as way
open(sys.argv[3], "wb").write(way.savedmodel_to_stablehlo(sys.argv[1], [sys.argv[2]]))
"""

_MAX_LENGTH = 130


def _reason(said: str) -> str:
    """Returns the first error of what a program has said, without places and paths."""
    lines = [line for line in said.splitlines() if re.search(r"(error|Error|ERROR): |Only support", line)]
    text = re.sub(r"^.*?(error|Error|ERROR):\s*", "", lines[0] if lines else "with a stack trace, and no reason")
    text = re.sub(r"^loc\(.*\): ", "", text)
    text = re.sub(r"/\S+", "", text.partition(": %")[0].partition(" but got")[0]).replace("|", "\\|").strip()
    return text if len(text) <= _MAX_LENGTH else text[:_MAX_LENGTH].rsplit(" ", 1)[0] + " ..."


def _run(command: list[str]) -> str:
    """Runs a program; returns what went wrong, nothing if it went well."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    if done.returncode == 0:
        return ""
    how = "crashes" if done.returncode < 0 or done.returncode >= 128 else "fails"
    return f"{how}: {_reason(done.stderr)}"


def _exported(tf: ModuleType, module: Any, model: OpenModel, folder: Path) -> str:
    """Takes TensorFlow's export of SavedModels to StableHLO; returns what went wrong."""
    text, program = folder / "theirs.mlirbc", folder / "theirs.vmfb"
    saved, key = folder / "saved", "serving_default"
    if isinstance(module.held, tf.keras.Model):
        # It takes networks only as Keras itself exports them.
        saved, key = folder / "exported", "serve"
        (spec,) = module.serve.input_signature
        given = tf.keras.InputSpec(shape=spec.shape.as_list(), dtype=spec.dtype.name)
        module.held.export(str(saved), input_signature=[given], verbose=False)
    failed = _run([sys.executable, "-c", _EXPORT, str(saved), key, str(text)])
    if failed:
        return f"the export {failed}"
    failed = _run([compiler.find(), str(text), "-o", str(program), *compiler.flags_of(Iree())])
    return f"IREE's compiler {failed}" if failed else _compared(tf, module, model, program, is_ours=False)


def _traced(tf: ModuleType, module: Any, model: OpenModel, folder: Path) -> str:
    """Takes the text that TensorFlow shows of a compiled function; returns what went wrong."""
    spec = module.serve.input_signature[0]
    compiled = tf.function(module.serve.python_function, jit_compile=True, autograph=False)
    try:
        text = compiled.experimental_get_compiler_ir(spec)(stage="stablehlo")
    except (ValueError, TypeError, RuntimeError, tf.errors.OpError) as problem:
        return f"fails: {_reason(str(problem))}"
    source, program = folder / "traced.mlir", folder / "traced.vmfb"
    source.write_text(text)
    failed = _run([compiler.find(), str(source), "-o", str(program), *compiler.flags_of(Iree())])
    return f"IREE's compiler {failed}" if failed else _compared(tf, module, model, program, is_ours=False)


def _converted(tf: ModuleType, module: Any, model: OpenModel, folder: Path) -> str:
    """Takes our way; returns what went wrong."""
    import tfconvert

    program = folder / "ours.vmfb"
    try:
        tfconvert.convert(folder / "saved", target="iree").save(program)
    except tfconvert.ConversionError as problem:
        return f"fails: {_reason(str(problem))}"
    return _compared(tf, module, model, program, is_ours=True)


def _compared(tf: ModuleType, module: Any, model: OpenModel, program: Path, *, is_ours: bool) -> str:
    """Runs a program at all sizes beside TensorFlow; returns what is wrong with its results."""
    run = _ours(program) if is_ours else _theirs(program)
    for x in model.inputs():
        expected = module.serve(tf.constant(x)).numpy()
        try:
            found = run(x)
        except (RuntimeError, ValueError, LookupError) as problem:
            return f"the program fails at {list(x.shape)}: {_reason(str(problem))}"
        close = 2e-5 * float(np.abs(expected).max(initial=0))
        if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-5, atol=close):
            return f"wrong results at {list(x.shape)}"
    return ""


def _ours(program: Path) -> Callable[[Any], Any]:
    import tfconvert

    loaded = tfconvert.load(program)
    return lambda x: next(iter(loaded.run([x]).values()))


def _theirs(program: Path) -> Callable[[Any], Any]:
    from iree import runtime

    config = runtime.Config("local-sync")
    module = runtime.VmModule.mmap(config.vm_instance, str(program))
    context = runtime.SystemContext(config=config)
    context.add_vm_module(module)
    loaded = context.modules[module.name]
    name = next(name for name in module.function_names if not name.startswith("__"))
    return lambda x: loaded[name](x).to_host()


# The ways, by what they are; each returns what went wrong.
WAYS: Mapping[str, Callable[[ModuleType, Any, OpenModel, Path], str]] = {
    "tfconvert": _converted,
    "TensorFlow's export of SavedModels": _exported,
    "`experimental_get_compiler_ir`": _traced,
}


def table(tf: ModuleType) -> str:
    """Returns the table."""
    lines = [f"| model | {' | '.join(WAYS)} |", f"|---|{'---|' * len(WAYS)}"]
    for name, model in MODELS.items():
        cells = []
        for way in WAYS.values():
            # Each way begins with a new model: runs may change its state.
            module = model.build(tf)
            with tempfile.TemporaryDirectory() as folder:
                tf.saved_model.save(module, str(Path(folder, "saved")), signatures=module.serve)
                cells.append(way(tf, module, model, Path(folder)) or "equal at five sizes")
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Prints the table, or puts it into the docs."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    made = table(tf)
    if "--write" not in sys.argv:
        print(made)
        return
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, found, after = rest.partition(END)
    assert found, f"{PAGE} has no place for the table"
    PAGE.write_text(before + BEGIN + made + END + after, "utf-8")


if __name__ == "__main__":
    main()
