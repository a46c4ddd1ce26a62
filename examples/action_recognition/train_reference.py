"""Train the reference on the clips and keep its weights: the metric is compared with trained ones."""

import argparse
from pathlib import Path

import torch
from reference_side import Clips, evaluation_data, loss, metric, model
from torch.utils.data import DataLoader


def train(epochs):
    torch.manual_seed(0)
    network = model()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.005)
    for _ in range(epochs):
        for clips, labels in DataLoader(Clips("train"), batch_size=16, shuffle=True):
            optimizer.zero_grad()
            loss(network(clips), labels).backward()
            optimizer.step()
    return network.eval()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    network = train(parser.parse_args().epochs)
    with torch.no_grad():
        logits, labels = zip(
            *((network(clips)["logits"], labels) for clips, labels in evaluation_data()), strict=True
        )
        found = metric({"logits": torch.cat(logits)}, torch.cat(labels))
    torch.save(network.state_dict(), Path(__file__).parent / "reference.pth")
    print(f"reference.pth: {', '.join(f'{name} {value:.3f}' for name, value in found.items())}")
