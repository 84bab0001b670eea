"""Online Newton learners: sketched, full, invariant, shared between classes, and the bank that needs no tuning."""
