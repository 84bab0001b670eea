"""What a person trains: how records become features and labels targets, a learner, and what it answers."""

from sketchnewton.model.label_watch import LabelWatch
from sketchnewton.model.model import Model, open_model
from sketchnewton.model.target import Classes, Numbers, Signs, Target

__all__ = ["Classes", "LabelWatch", "Model", "Numbers", "Signs", "Target", "open_model"]
