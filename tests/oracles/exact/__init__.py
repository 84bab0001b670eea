"""The papers' algorithms in many digits, written from their boxes alone: what the learners are judged by.

`newton` has SON's family, `adagrad` ADA's, `losses` the losses and `streams` awkward rows to try them on. Nothing
here is sparse, fast or shared with the package.
"""
