"""Random mutants of models in every format, converted under limits: a result or an explained refusal, nothing else.

    python -m tests.mutate --count 100000 --keep FOLDER

`seed_models`, `keras_seeds` and `seeds` make the models, `mutants` draws what is changed in which (`messages`,
`checkpoints`, `tokens`, `flatbuffers`, `artifacts`, `keras_files` change the formats), `worker` converts mutants in
other processes, `litert` opens what came of some, `campaign` counts, and groups failures by where they arise, and
`journal` keeps the outcomes, so that a campaign can be interrupted.
"""
