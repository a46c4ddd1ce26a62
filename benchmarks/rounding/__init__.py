"""Runs a command at an extreme of rounding: ``python -m benchmarks.rounding noisy:1 -- python -m pytest``.

Processors, libraries and numbers of threads round otherwise, and no machine shows all of it. The two extremes
are made here, whatever the machine:

``equal``    what sums, multiplies or approximates is computed in float64 and rounded once, on both sides. Two
             frameworks that compute the same then give the same bits, or nearly always: the last bits of
             float64 differ as well, and in one of some hundred million cases rounding does not hide that.
``noisy:N``  the same, and every result is then moved by up to one unit in the last place, by a pattern that
             follows from the seed N, the side and the value. A call that is repeated gives the same bits
             again, and equal values stay equal, as on a processor. What is exact (a sum of small integers, a
             zero) is left alone, as it is exact on every processor.

``OPS`` (table.py) says which ops. Each becomes three: widen what comes in, compute, narrow what comes out.
These are steps of the framework's own graph, so that backward is in float64 and rounded once as well, and
under noise every gradient that leaves an op is moved too. Paddle rounds some things to float32 even there:
the exponent of a power, the share of each value in the backward of an average pool. GELU's far tail cancels
in float64, each framework's in its own way.

Left as they are: what IEEE 754 rounds correctly everywhere (add, multiply and divide of equal shapes, square
roots), gradients added up where a tensor is used several times, gradients kept by row, the fused updates of
optimizers, ops in place and those with ``out=``, what is float64 already, what a compiled program runs
(``torch.compile``, ``paddle.jit.to_static``), paddle under automatic mixed precision, torch in inference
mode, and interpolation, whose positions paddle computes in float32 whatever it is given.
"""
