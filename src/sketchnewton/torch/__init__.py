"""Optimizers for PyTorch whose metric sees correlated gradients: Shampoo, SOAP and AdaGrad, with sketches.

`SketchySOAP` is Adam along the directions that matter to a weight matrix's rows and columns, by sketches of
their covariances: the one to try first. `SketchyShampoo` preconditions by the same sketches. `AdaGP`, `AdaFD`,
`AdaFull` and `RadaGrad` step along (σI + G^½)⁻¹g, where G is a small memory of the outer products of the
gradients so far: by a random projection, by Frequent Directions, whole, or by a randomised range finder (Wan
and Zhang, *Accelerating adaptive online learning by matrix approximation*, 2019, "ADA"). Each parameter tensor
has an H of its own, over all its entries; in param groups with `per_output=True` the weights of each output of
a layer have one. Groups with `diagonal=True` have a step size per entry. `auto_groups` chooses by shape.

Needs PyTorch: pip install 'sketchnewton[torch]'.

>>> import torch
>>> from sketchnewton.torch import SketchyShampoo
>>> model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 10))
>>> optimizer = SketchyShampoo(model.parameters())
>>> loss = torch.nn.functional.cross_entropy(model(torch.ones(4, 1, 8, 8)), torch.arange(4))
>>> loss.backward()
>>> optimizer.step()
"""

from sketchnewton.torch.adaptive import AS_PUBLISHED, AdaFD, AdaFull, AdaGP, RadaGrad
from sketchnewton.torch.groups import auto_groups
from sketchnewton.torch.shampoo import SketchyShampoo
from sketchnewton.torch.soap import SketchySOAP

__all__ = [
    "AS_PUBLISHED",
    "AdaFD",
    "AdaFull",
    "AdaGP",
    "RadaGrad",
    "SketchySOAP",
    "SketchyShampoo",
    "auto_groups",
]
