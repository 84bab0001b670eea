"""The AdaGrad family: diagonal, sketched, full and low-rank."""
