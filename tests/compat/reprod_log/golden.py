"""What reprod_log 1.0.1 printed for the two files in ``original/``, which it also wrote.

Without the time stamps. ``THRESHOLD`` was 1e-6. The original lets one method's failure spoil the
verdict of those after it: the one line where that shows is kept in ``SPOILED``.
"""

from pathlib import Path

FOLDER = Path(__file__).parent / "original"
TORCH = FOLDER / "forward_torch.npy"
PADDLE = FOLDER / "forward_paddle.npy"

MEAN = """\
logits:\x20
\tmean diff: check passed: True, value: 2.808713759350212e-07
double:\x20
\tmean diff: check passed: True, value: 5.991987412787281e-07
far:\x20
\tmean diff: check passed: False, value: 1.0037403106689453
same:\x20
\tmean diff: check passed: True, value: 0.0
acc_top1:\x20
\tmean diff: check passed: False, value: 0.5
label:\x20
\tmean diff: check passed: False, value: 3.0
nested
\thidden
\t\t0:\x20
\t\t\tmean diff: check passed: False, value: 9.582439815858379e-05
\tloss:\x20
\t\tmean diff: check passed: True, value: 0.0
diff check failed
"""

ALL = """\
logits:\x20
\tmin diff: check passed: True, value: 0.0
\tmax diff: check passed: True, value: 8.344650268554688e-07
\tmean diff: check passed: True, value: 2.808713759350212e-07
double:\x20
\tmin diff: check passed: True, value: 1.7252281314661388e-07
\tmax diff: check passed: False, value: 1.0159215767524543e-06
\tmean diff: check passed: False, value: 5.991987412787281e-07
far:\x20
\tmin diff: check passed: False, value: 0.06741797924041748
\tmax diff: check passed: False, value: 2.705526113510132
\tmean diff: check passed: False, value: 1.0037403106689453
same:\x20
\tmin diff: check passed: True, value: 0.0
\tmax diff: check passed: True, value: 0.0
\tmean diff: check passed: True, value: 0.0
acc_top1:\x20
\tmin diff: check passed: False, value: 0.5
\tmax diff: check passed: False, value: 0.5
\tmean diff: check passed: False, value: 0.5
label:\x20
\tmin diff: check passed: False, value: 1
\tmax diff: check passed: False, value: 5
\tmean diff: check passed: False, value: 3.0
nested
\thidden
\t\t0:\x20
\t\t\tmin diff: check passed: False, value: 5.054473876953125e-05
\t\t\tmax diff: check passed: False, value: 0.0001800060272216797
\t\t\tmean diff: check passed: False, value: 9.582439815858379e-05
\tloss:\x20
\t\tmin diff: check passed: True, value: 0.0
\t\tmax diff: check passed: True, value: 0.0
\t\tmean diff: check passed: True, value: 0.0
diff check failed
"""

SPOILED = "\tmean diff: check passed: False, value: 5.991987412787281e-07"
