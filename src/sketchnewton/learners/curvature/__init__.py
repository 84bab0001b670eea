"""Sketches inside learners: what a learner remembers of the curvature it has seen."""
