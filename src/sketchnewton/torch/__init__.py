"""AdaGrad with more than a diagonal, for PyTorch: `AdaGP`, `AdaFD`, `AdaFull` and `RadaGrad`.

Every step is w ← w − η H⁻¹g with H = σI + G^½, where G is a small memory of the outer products of the gradients so
far. The optimizers differ in how they remember: by a random projection, by Frequent Directions, whole, or by a
randomised range finder. Each parameter tensor has an H of its own, over all its entries; in param groups with
`per_output=True` the weights of each output of a layer have one. Groups with `diagonal=True` have AdaGrad's
diagonal H instead, as all but the convolutions of a network have in Wan and Zhang, *Accelerating adaptive online
learning by matrix approximation*, 2019 ("ADA").

Needs PyTorch: pip install 'sketchnewton[torch]'.

>>> import torch
>>> from sketchnewton.torch import AdaGP
>>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 10))
>>> optimizer = AdaGP([
...     {"params": model[0].parameters()},
...     {"params": model[2].parameters(), "diagonal": True},
... ], lr=0.01, sketch_size=20)
>>> loss = torch.nn.functional.cross_entropy(model(torch.ones(4, 1, 8, 8)), torch.arange(4))
>>> loss.backward()
>>> optimizer.step()
"""

from sketchnewton.torch.optimizers import AdaFD, AdaFull, AdaGP, RadaGrad

__all__ = ["AdaFD", "AdaFull", "AdaGP", "RadaGrad"]
