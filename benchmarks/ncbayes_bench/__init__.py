"""ncbayes beside the alternatives: ``ncbayes bench``, and longer measurements of its own.

``python -m ncbayes_bench.nuts``, ``.torus_size`` and ``.density_mixing`` each measure one thing.
They use ``ncbayes`` as any user would, and nothing imports them but the command.
"""
