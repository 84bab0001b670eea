"""Losses of one real prediction: value, derivative, curvature, link. One module each, with all its facts."""

from sketchnewton.core.names import LOSSES
from sketchnewton.losses.base import Loss, get_loss, loss_class

__all__ = ["LOSSES", "Loss", "get_loss", "loss_class"]
