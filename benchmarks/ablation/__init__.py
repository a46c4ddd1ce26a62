"""What every hypothesis, rule, repair, excuse and deciding number is worth, by a run without it.

``python -m benchmarks.ablation count -- COMMAND``        which of them spoke at all while a command ran
``python -m benchmarks.ablation off NAME -- COMMAND``     a command without one of them
``python -m benchmarks.ablation each [NAME ...]``         a catalogue without each of them, one at a time

A name is that of a function in one of ``switches.TABLES`` (``differing.another_op``), or a deciding number
and what becomes of it (``verdicts.CALL*4``, ``verdicts.CALL/4``). What a command starts runs likewise.
"""
