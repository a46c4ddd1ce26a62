"""The documentation's page of cause codes, made from the register; run it to print the page."""

from __future__ import annotations

import sys

from parfocal.judge.codes import CODES
from parfocal.locale import ENGLISH
from parfocal.phrases import phrase, translate

FIELD, FILE = "`report.first.cause.code`", "`parfocal/judge/codes.py`"

TITLES = {
    "weight": phrase("Weights"),
    "config": phrase("Settings of layers"),
    "op": phrase("Ops and code"),
    "mode": phrase("Modes"),
    "random": phrase("Random numbers"),
    "dtype": phrase("Precision"),
    "layout": phrase("Layout"),
    "buffer": phrase("Running statistics"),
    "loss": phrase("Losses"),
    "grad": phrase("Gradients"),
    "optim": phrase("Optimizers"),
    "lr": phrase("Learning rates"),
    "data": phrase("Data"),
    "metric": phrase("Metrics"),
    "init": phrase("Initialisation"),
    "dist": phrase("Many ranks"),
}


def page(language: str = ENGLISH) -> str:
    def told(text: str) -> str:
        return translate(text, language)

    lines = [
        f"# {told(phrase('Cause codes'))}",
        "",
        told(
            phrase(
                "A divergence that is explained has a cause with one of these codes ({field}).", field=FIELD
            )
        ),
        told(
            phrase(
                "They are stable: more are added, none is renamed. This page is made from {file}.", file=FILE
            )
        ),
    ]
    for family, title in TITLES.items():
        lines += [
            "",
            f"## {told(title)}",
            "",
            told(phrase("| code | what it means | for example | phases |")),
            "| --- | --- | --- | --- |",
        ]
        lines += [
            f"| `{name}` | {told(code.meaning)} | {told(code.example)} | {', '.join(code.phases)} |"
            for name, code in CODES.items()
            if name.partition(".")[0] == family
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
