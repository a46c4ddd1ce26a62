"""Short made-up reviews in two tab-separated files: a label, and words of which some are telling."""

import random
from pathlib import Path

TELLING = {
    "good": "fine great superb lovely bright",
    "bad": "dull poor awful weak grim",
    "mixed": "uneven odd split part half",
}
COMMON = [
    "the",
    "a",
    "film",
    "story",
    "actor",
    "scene",
    "plot",
    "with",
    "and",
    "of",
    "end",
    "it",
    "was",
    "this",
]


def write(path, count, seed):
    generator = random.Random(seed)
    lines = []
    for _ in range(count):
        label = generator.choice(sorted(TELLING))
        words = generator.choices(COMMON, k=generator.randint(3, 14))
        for _ in range(generator.randint(1, 3)):
            words.insert(generator.randint(0, len(words)), generator.choice(TELLING[label].split()))
        if generator.random() < 0.15:
            words.append(generator.choice(TELLING[generator.choice(sorted(TELLING))].split()))
        lines.append(f"{label}\t{' '.join(words)}\n")
    path.write_text("".join(lines))


if __name__ == "__main__":
    folder = Path("reviews")
    folder.mkdir(exist_ok=True)
    write(folder / "train.tsv", 210, seed=1)
    write(folder / "test.tsv", 90, seed=2)
