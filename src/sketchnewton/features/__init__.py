"""Features: how records become numbered features."""

from sketchnewton.features.columns import Columns
from sketchnewton.features.names import Names, hash_feature, hash_namespace
from sketchnewton.features.options import Features

__all__ = ["Columns", "Features", "Names", "hash_feature", "hash_namespace"]
