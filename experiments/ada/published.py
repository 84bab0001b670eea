"""What ADA publishes: Tables 1 to 3. Its figures are curves without numbers."""

TABLE_1 = {
    "E[·]": "expectation",
    "I_d": "identity matrix of size d × d",
    "‖X‖": "spectral norm of X",
    "λ_i(X)": "i-th largest eigenvalue of X",
    "tr(X)": "trace of X",
    "‖x‖₂": "Euclidean norm of x",
    "‖x‖_Ψ*": "dual norm of x with respect to Ψ",
}
TABLE_2 = {  # rows to learn from, rows to test, features, classes
    "gisette": (6000, 1000, 5000, 2),
    "SensIT vehicle": (78_823, 19_705, 100, 3),
    "usps": (7291, 2007, 256, 10),
    "MNIST": (60_000, 10_000, 784, 10),
    "CIFAR10": (50_000, 10_000, 3072, 10),
    "SVHN": (73_257, 26_032, 3072, 10),
}
# Table 3: test accuracy in percent.
TABLE_3 = {
    "gisette": {"ADA-DIAG": 96.28, "RADAGRAD": 96.94, "RP-SON": 97.02, "ADA-GP": 97.28, "ADA-DP": 97.30},
    "SensIT vehicle": {
        "ADA-FULL": 80.78,
        "ADA-DIAG": 79.37,
        "RADAGRAD": 80.42,
        "RP-SON": 80.49,
        "ADA-GP": 80.75,
        "ADA-DP": 80.72,
    },
    "usps": {
        "ADA-FULL": 91.51,
        "ADA-DIAG": 89.30,
        "RADAGRAD": 90.25,
        "RP-SON": 89.33,
        "ADA-GP": 91.11,
        "ADA-DP": 90.99,
    },
}
