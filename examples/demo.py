"""The main job on bundled models: a port with a mistake, found; then mended, and the same."""

from __future__ import annotations

import sys

import encoder_paddle
import encoder_torch
import numpy as np

import parfocal as pf


def main() -> int:
    reference = encoder_torch.build()
    ids = np.random.default_rng(0).integers(0, 1000, (4, 32))

    print("A port with one wrong epsilon, six blocks deep\n" + "=" * 46)
    wrong = pf.align(reference, encoder_paddle.build_with_a_mistake(), ids)
    print(wrong)

    print("\nThe same port, mended\n" + "=" * 21)
    right = pf.align(reference, encoder_paddle.build(), ids)
    print(right)
    return 0 if right.ok and not wrong.ok else 1


if __name__ == "__main__":
    sys.exit(main())
