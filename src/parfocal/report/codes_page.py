"""The documentation's page of cause codes, made from the register; run it to print the page."""

from __future__ import annotations

import sys

from parfocal.judge.codes import CODES

TITLES = {
    "weight": "Weights",
    "config": "Settings of layers",
    "op": "Ops and code",
    "mode": "Modes",
    "random": "Random numbers",
    "dtype": "Precision",
    "layout": "Layout",
    "buffer": "Running statistics",
    "loss": "Losses",
    "grad": "Gradients",
    "optim": "Optimizers",
    "lr": "Learning rates",
    "data": "Data",
    "metric": "Metrics",
    "init": "Initialisation",
    "dist": "Many ranks",
}


def page() -> str:
    lines = [
        "# Cause codes",
        "",
        "A divergence that is explained has a cause with one of these codes (`report.first.cause.code`).",
        "They are stable: more are added, none is renamed. This page is made from `parfocal/judge/codes.py`.",
    ]
    for family, title in TITLES.items():
        lines += [
            "",
            f"## {title}",
            "",
            "| code | what it means | for example | phases |",
            "| --- | --- | --- | --- |",
        ]
        lines += [
            f"| `{name}` | {code.meaning} | {code.example} | {', '.join(code.phases)} |"
            for name, code in CODES.items()
            if name.partition(".")[0] == family
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
