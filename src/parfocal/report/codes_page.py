"""The documentation's page of cause codes, made from the register; run it to print the page.

``python -m parfocal.report.codes_page zh`` prints it in Chinese.
"""

from __future__ import annotations

import sys

from parfocal.judge.codes import Code, codes, proofs
from parfocal.locale import ENGLISH
from parfocal.phrases import joined, phrase, translate
from parfocal.report.wording import GROUNDS, WAYS

FIELD, FILE = "`report.first.cause.code`", "`parfocal/data/codes.toml`"

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
        lines += ["", f"## {told(title)}"]
        for name, code in codes().items():
            if name.partition(".")[0] == family:
                lines += ["", f"### `{name}`", "", *map(told, _entry(code, language))]
    return "\n".join(lines) + "\n"


def _entry(code: Code, language: str) -> list[str]:
    meaning, example, symptom, proof, fix = (
        text.words(language)
        for text in (code.meaning, code.example, code.symptom, proofs()[code.proof], code.fix)
    )
    return [
        phrase("{meaning} {example}", meaning=meaning, example=_example(example)),
        "",
        phrase("- {told}", told=phrase("**What you see**: {symptom}", symptom=symptom)),
        phrase("- {told}", told=phrase("**Proof**: {proof}", proof=proof)),
        *(phrase("- {told}", told=each) for each in _evidence(code)),
        phrase("- {told}", told=phrase("**Fix**: {fix}", fix=fix)),
        phrase("- {told}", told=phrase("**Phases**: {phases}", phases=joined(", ", code.phases))),
    ]


def _evidence(code: Code) -> list[str]:
    """How it is proven, and where it is only likely."""
    if not (code.proven or code.likely):
        return [phrase("**A note, never a cause**: nothing is proven of it")]
    lines = []
    if code.proven:
        ways = joined("; ", (WAYS[way] for way in code.proven))
        lines.append(phrase("**A cause where it is**: {ways}", ways=ways))
    if code.likely:
        grounds = joined("; ", (GROUNDS[each] for each in code.likely))
        lines.append(phrase("**Only likely where it is**: {grounds}", grounds=grounds))
    return lines


def _example(example: str) -> str:
    return phrase("For example: {example}.", example=example)


if __name__ == "__main__":
    sys.stdout.write(page(*sys.argv[1:2]))
