"""What a person trains: how records become features and labels targets, a learner, and what it answers."""

from sketchnewton.model.model import Model, open_model
from sketchnewton.model.target import Classes, LabelWatch, Numbers, Signs, Target

__all__ = ["Classes", "LabelWatch", "Model", "Numbers", "Signs", "Target", "open_model"]
