"""A PyTorch net: AdaFD keeps a sketch of the gradients of each layer where Adagrad keeps their squares."""

import argparse

import torch
from matplotlib.figure import Figure
from torch import nn

from sketchnewton.torch import AdaFD

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--rows", type=int, default=2_000)
parser.add_argument("--picture", default="torch_net.png")
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(0)
X = torch.randn(args.rows, 20) @ torch.randn(20, 20) / 4  # correlated features
y = (X[:, 0] + X[:, 1].abs() - X[:, 2] > 0.5).float()


def train(make) -> list[float]:
    """Losses of batches of 50, each before it was learned."""
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer, losses = make(net.parameters()), []
    for start in range(0, args.rows, 50):
        output = net(X[start : start + 50]).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(output, y[start : start + 50])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


figure = Figure(figsize=(7, 3), layout="constrained")
axes = figure.subplots()
rates = (0.01, 0.03, 0.1)
for name, make in {
    "Adagrad": lambda parameters, rate: torch.optim.Adagrad(parameters, lr=rate),
    "AdaFD": lambda parameters, rate: AdaFD(parameters, lr=rate, sigma=0.1, sketch_size=8),
}.items():
    runs = {rate: train(lambda parameters, rate=rate, make=make: make(parameters, rate)) for rate in rates}
    best = min(runs, key=lambda rate: sum(runs[rate]))
    mean = sum(runs[best]) / len(runs[best])
    print(f"{name}: mean loss {mean:.4f} in one pass, lr={best} of {', '.join(map(str, rates))}")
    losses = torch.tensor(runs[best])
    axes.plot(torch.cumsum(losses, 0) / torch.arange(1, len(losses) + 1), label=f"{name}, lr={best}")
axes.set(xlabel="batches of 50", ylabel="mean loss so far")
axes.legend(frameon=False)
figure.savefig(args.picture, dpi=120)
