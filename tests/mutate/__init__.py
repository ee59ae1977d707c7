"""Random mutants of models in every format, converted under limits: a result or an explained refusal, nothing else.

    python -m tests.mutate --count 100000 --keep FOLDER

`seed_models` and `seeds` make the models, `mutants` draws what is changed in which (`messages`, `checkpoints`,
`tokens`, `flatbuffers` change the formats), `worker` converts a mutant in a process of its own, `litert` opens what
came of some, and `campaign` counts, and groups failures by where they arise.
"""
