"""Losses of one real prediction: value, derivative, curvature, link."""

from sketchnewton.losses.all import LOSSES, Loss, get_loss

__all__ = ["LOSSES", "Loss", "get_loss"]
