"""The estimators are scikit-learn's: its own checks, its own words, and online learning underneath."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csc_array, csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_class_weight_classifiers, estimator_checks_generator

from sketchnewton import SketchedAdaGradRegressor, SketchedNewtonClassifier, SketchedNewtonRegressor
from tests.ecosystems.support import CLASSIFIERS, ESTIMATORS, REGRESSORS, rows

# Rows are learned in order and one by one, so two orders give two models, and a weight of 2 is one step of twice
# the loss, not two steps. scikit-learn exempts its own online learners (SGDClassifier, Perceptron) for this
# reason.
ORDER_MATTERS = {
    "check_sample_weight_equivalence_on_dense_data": "learned in order, one step per row",
    "check_sample_weight_equivalence_on_sparse_data": "learned in order, one step per row",
}
# Weights of classes must make nearly all rows of the favoured class, wherever they lie: a linear model without a
# constant cannot, as its scores change sign at the origin.
NEEDS_INTERCEPT = check_class_weight_classifiers


# Balanced weights need all rows, so that a first partial_fit refuses them, in the words of SGDClassifier.
MORE_SETTINGS: dict[str, Any] = {
    "balanced": SketchedNewtonClassifier(class_weight="balanced"),
    "no clip": SketchedNewtonClassifier(clip=None),
    "poisson": SketchedNewtonRegressor(loss="poisson"),
    "high quantile": SketchedNewtonRegressor(loss="quantile:0.95"),
    "low quantile": SketchedNewtonRegressor(learner="newton", loss="quantile:0.05"),
    "newton, poisson": SketchedNewtonRegressor(learner="newton", loss="poisson"),
}
NEEDS_ALL_ROWS = ("check_n_features_in_after_fitting", "check_estimators_partial_fit_n_features")


def test_sgd_classifier_refuses_balanced_weights_in_the_same_checks() -> None:
    checks = [check for _, check in estimator_checks_generator(SGDClassifier(class_weight="balanced"))]
    for check in checks:
        if check.func.__name__ in NEEDS_ALL_ROWS:
            with pytest.raises(ValueError, match="class_weight 'balanced' is not supported for partial_fit"):
                check(SGDClassifier(class_weight="balanced"))
    assert {check.func.__name__ for check in checks} >= set(NEEDS_ALL_ROWS)


@pytest.mark.parametrize("name", [*ESTIMATORS, *MORE_SETTINGS])
def test_scikit_learn_accepts_it(name: str) -> None:
    passed = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many checks provoke them
        for estimator, check in estimator_checks_generator({**ESTIMATORS, **MORE_SETTINGS}[name]):
            if check.func.__name__ in ORDER_MATTERS or check.func.__name__ == "check_array_api_input":
                continue  # the latter needs packages of other array libraries
            if (
                estimator.get_params().get("class_weight") == "balanced"
                and check.func.__name__ in NEEDS_ALL_ROWS
            ):
                continue
            if check.func is NEEDS_INTERCEPT and not estimator.fit_intercept:
                continue
            check(estimator)
            passed += 1
    assert passed > 50


def test_no_linear_model_favours_a_class_without_an_intercept() -> None:
    for peer in (SGDClassifier(fit_intercept=False), LogisticRegression(fit_intercept=False)):
        with pytest.raises(AssertionError):
            NEEDS_INTERCEPT(type(peer).__name__, peer)


def targets(estimator: Any, classes: int = 3) -> tuple[Any, Any]:
    X, y = rows(240, 7, classes)
    return (X, y) if hasattr(estimator, "predict_proba") else (X, 1e3 * X[:, 0] - 50.0 * y)


def one_pass(name: str) -> Any:
    return clone(ESTIMATORS[name]).set_params(max_iter=1, shuffle=False, early_stopping=False)


def assert_same_model(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(a.coef_, b.coef_)
    np.testing.assert_array_equal(a.intercept_, b.intercept_)
    assert a.t_ == b.t_


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_batches_of_any_size_equal_one_pass(name: str, kind: str) -> None:
    estimator = one_pass(name)
    X, y = targets(estimator)
    X = {"dense": X, "sparse": csr_array(X), "float32": X.astype(np.float32)}[kind]
    whole = clone(estimator).fit(X, y)
    rng = np.random.default_rng(0)
    for _ in range(3):
        cuts = [0, *sorted(rng.choice(np.arange(1, 240), rng.integers(1, 60), replace=False)), 240]
        parts = clone(estimator)
        for begin, end in itertools.pairwise(cuts):
            options = {"classes": np.unique(y)} if hasattr(parts, "predict_proba") and begin == 0 else {}
            parts.partial_fit(X[begin:end], y[begin:end], **options)
        assert_same_model(whole, parts)


def _twice(X: Any) -> Any:
    """Each entry as two halves, which mean their sum."""
    X = csr_array(X)
    return csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), X.indptr * 2), shape=X.shape)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_sparse_rows_are_dense_ones(name: str) -> None:
    """To the bit, whatever the order of entries, and where entries come twice."""
    estimator = one_pass(name)
    X, y = targets(estimator)
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    dense = clone(estimator).fit(X, y)
    for sparse in (csr_array(X), _twice(X), csr_array(X[:, ::-1])[:, ::-1], coo_array(X), csc_array(X)):
        model = clone(estimator).fit(sparse, y)
        assert_same_model(model, dense)
        np.testing.assert_array_equal(model.predict(sparse), dense.predict(X))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_early_stopping_knows_the_names_of_columns(name: str) -> None:
    X, y = targets(ESTIMATORS[name])
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    model = clone(ESTIMATORS[name]).set_params(early_stopping=True, max_iter=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named = clone(model).fit(frame, y)
        assert_same_model(named, clone(model).fit(X, y))
        np.testing.assert_array_equal(named.feature_names_in_, frame.columns)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_pickle_mapped_into_memory_learns_on(name: str, tmp_path: Path) -> None:
    X, y = targets(ESTIMATORS[name])
    model = clone(ESTIMATORS[name]).set_params(random_state=0).fit(X, y)
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r").partial_fit(X, y)
    assert_same_model(mapped, model.partial_fit(X, y))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_weight_zero_is_leaving_the_row_out(name: str) -> None:
    estimator = one_pass(name)
    X, y = targets(estimator)
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    kept = weights > 0
    kept[:3] = weights[:3] = 1  # all classes remain
    with_zeros = clone(estimator).fit(X, y, sample_weight=weights)
    without = clone(estimator).fit(X[kept], y[kept], sample_weight=weights[kept])
    assert_same_model(with_zeros, without)
    if set(np.unique(y)) == set(np.unique(y[kept])):
        np.testing.assert_array_equal(with_zeros.predict(X), without.predict(X))


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("classes", [2, 5])
def test_probabilities(name: str, classes: int) -> None:
    X, y = rows(300, 6, classes)
    model = clone(CLASSIFIERS[name]).fit(X, y)
    proba = model.predict_proba(X)
    assert proba.shape == (300, classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert ((proba > 0) & (proba < 1)).all()
    far = model.predict_proba(1e6 * X)
    assert ((far > 0) & (far < 1)).all()
    np.testing.assert_allclose(far.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert np.isfinite(model.predict_log_proba(X)).all()
    scores = model.decision_function(X)
    if not model._learners[0].experts:
        linear = (X @ model.coef_.T + model.intercept_).reshape(scores.shape)
        np.testing.assert_allclose(scores, linear, rtol=1e-4, atol=1e-4)
    assert (model.classes_[proba.argmax(axis=1)] == model.predict(X)).mean() > 0.99  # but for ties
    assert model.coef_.shape == (1 if classes == 2 else classes, 6)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_pickle_continues_bit_for_bit(name: str) -> None:
    estimator = one_pass(name)
    X, y = targets(estimator)
    first = clone(estimator).fit(X, y)
    second = pickle.loads(pickle.dumps(first))
    assert_same_model(first.partial_fit(X, y), second.partial_fit(X, y))


def test_pandas_and_polars_and_names() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = rows(100, 4, 2)
    names = [f"f{i}" for i in range(4)]
    for frame in (pandas.DataFrame(X, columns=names), polars.DataFrame(X, schema=names)):
        model = SketchedNewtonClassifier(random_state=0).fit(frame, y)
        assert list(model.feature_names_in_) == names
        assert_same_model(model, clone(model).fit(X, y))
        model.partial_fit(frame, y)
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            model.partial_fit(X, y)
        with pytest.raises(
            ValueError, match="The feature names should match those that were passed during fit"
        ):
            model.predict(frame[names[::-1]])


def test_at_home_in_pipelines_and_searches() -> None:
    X, y = rows(200, 5, 3)
    pipeline = make_pipeline(
        StandardScaler(), SketchedNewtonClassifier(learner="newton", sketch="oja")
    ).set_output(transform="default")
    search = GridSearchCV(pipeline, {"sketchednewtonclassifier__loss": ["squared", "logistic"]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.5
    with config_context(enable_metadata_routing=True):
        weighted = SketchedNewtonClassifier(learner="newton", sketch="oja", random_state=0).set_fit_request(
            sample_weight=True
        )
        routed = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), weighted)
        weights = np.arange(200.0)
        routed.fit(X, y, sample_weight=weights)
        alone = clone(weighted).fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
        np.testing.assert_array_equal(routed[-1].coef_, alone.coef_)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("seed", [1, 3, 5])
def test_balanced_weights_find_a_rare_class(loss: str, seed: int) -> None:
    """One row in 300 to 600: a heavy row is no run of labels. (Balanced accuracy was .5 in five of six cases.)"""
    rng = np.random.default_rng([seed, 45])
    d = [5, 20][seed // 2 % 2]
    X = rng.standard_normal((40_000, d))
    score = X @ rng.standard_normal(d) / np.sqrt(d)
    y = (rng.random(len(X)) < 1 / (1 + np.exp(8 - 2 * score))).astype(int)
    learned, new = slice(30_000), slice(30_000, None)
    model = SketchedNewtonClassifier(class_weight="balanced", loss=loss, max_iter=2, random_state=0)
    model.fit(X[learned], y[learned])
    peer = LogisticRegression(class_weight="balanced").fit(X[learned], y[learned])
    accuracy, wanted = (balanced_accuracy_score(y[new], m.predict(X[new])) for m in (model, peer))
    assert accuracy > wanted - 0.06
    assert model.t_ <= 1 + 2 * 2 * 30_000
    flat = SketchedNewtonClassifier(max_iter=2, random_state=0).fit(
        X[:500], score[:500] > 0, np.full(500, 3.0)
    )
    assert flat.t_ == 1 + 2 * 500  # rows of one weight are learned once each


@pytest.mark.parametrize("random_state", [0, 2])
def test_heavy_rows_do_not_decide_alone(random_state: int) -> None:
    """One of the last rows made the constant expert lead: squared errors of 1.26 and .57, ridge regression .25."""
    rng = np.random.default_rng([4, 91])
    X = rng.standard_normal((20_000, 5))
    score = X @ rng.standard_normal(5) / np.sqrt(5)
    rng.random(len(X))
    rng.standard_normal(len(X))
    weights = np.exp(2 * rng.standard_normal(len(X)))
    y = score + 0.5 * rng.standard_normal(len(X))
    model = SketchedNewtonRegressor(random_state=random_state).fit(X[:15_000], y[:15_000], weights[:15_000])
    assert np.mean((model.predict(X[15_000:]) - y[15_000:]) ** 2) < 0.3


def test_class_weights() -> None:
    X, y = rows(200, 5, 3)
    heavy = {0: 3.0, 1: 1.0, 2: 0.5}
    by_class = SketchedNewtonClassifier(class_weight=heavy, random_state=0).fit(X, y)
    by_row = SketchedNewtonClassifier(random_state=0).fit(X, y, sample_weight=np.vectorize(heavy.get)(y))
    assert_same_model(by_class, by_row)
    with pytest.raises(ValueError, match="class_weight 'balanced' is not supported for partial_fit"):
        SketchedNewtonClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1, 2])


@pytest.mark.parametrize("name", ["oja", "adagrad"])
def test_passes(name: str) -> None:
    X, y = rows(300, 5, 2)
    model = (
        clone(CLASSIFIERS[name])
        .set_params(max_iter=50, tol=1e-1, n_iter_no_change=3, random_state=0)
        .fit(X, y)
    )
    assert 3 < model.n_iter_ == len(model.loss_curve_) < 50
    assert model.t_ == 1 + 300 * model.n_iter_
    stopped = clone(model).set_params(early_stopping=True, random_state=0, shuffle=True).fit(X, y)
    assert stopped.n_iter_ < 50
    assert stopped.t_ == 1 + 270 * stopped.n_iter_
    again = clone(stopped).fit(X, y)
    assert_same_model(stopped, again)
    in_order = clone(CLASSIFIERS[name]).set_params(shuffle=False)
    warm = clone(in_order).set_params(warm_start=True, max_iter=1).fit(X, y).fit(X, y)
    assert_same_model(warm, clone(in_order).set_params(max_iter=2).fit(X, y))
    with pytest.raises(ValueError, match="warm_start can only be used where `y` has the same classes"):
        warm.fit(X, y + 1)


class TestScikitLearnsWords:
    X, y = rows(60, 4, 3)

    def fitted(self, name: str = "newton") -> Any:
        return clone(CLASSIFIERS[name]).fit(self.X, self.y)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_not_finite(self, bad: float) -> None:
        model, peer = self.fitted(), SGDClassifier().fit(self.X, self.y)
        X = self.X.copy()
        X[3, 1] = bad
        for call in ("fit", "partial_fit", "predict"):
            said = []
            for estimator in (model, peer):
                with pytest.raises(ValueError, match="Input X contains") as error:
                    getattr(estimator, call)(X, *([self.y] if "fit" in call else []))
                said.append(str(error.value).replace("SGDClassifier", "SketchedNewtonClassifier"))
            assert said[0] == said[1]
        before = model.coef_.copy()
        with pytest.raises(ValueError, match="Input X contains"):
            model.partial_fit(X, self.y)
        np.testing.assert_array_equal(model.coef_, before)  # nothing was learned

    def test_missing_columns(self) -> None:
        with pytest.raises(
            ValueError, match="X has 3 features, but SketchedNewtonClassifier is expecting 4 features"
        ):
            self.fitted().partial_fit(self.X[:, :3], self.y)
        with pytest.raises(
            ValueError, match="X has 5 features, but SketchedNewtonRegressor is expecting 4 features"
        ):
            SketchedNewtonRegressor().fit(self.X, self.y).predict(np.ones((2, 5)))

    def test_wrong_types(self) -> None:
        with pytest.raises(ValueError, match="could not convert string to float"):
            self.fitted().partial_fit(np.full((60, 4), "a"), self.y)
        with pytest.raises(ValueError, match="Complex data not supported"):
            self.fitted().predict(self.X * 1j)
        with pytest.raises(ValueError, match="Unknown label type"):
            SketchedNewtonClassifier().fit(self.X, self.X[:, 0])
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
            self.fitted().predict(self.X[0])

    def test_one_class(self) -> None:
        message = "The number of classes has to be greater than one; got 1 class"
        with pytest.raises(ValueError, match=message):
            SketchedNewtonClassifier().fit(self.X, np.zeros(60))
        with pytest.raises(ValueError, match=message):
            SketchedNewtonClassifier().partial_fit(self.X, np.zeros(60), classes=[0])

    def test_classes(self) -> None:
        with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
            SketchedNewtonClassifier().partial_fit(self.X, self.y)
        with pytest.raises(ValueError, match="is not the same as on last call to partial_fit"):
            self.fitted().partial_fit(self.X, self.y, classes=[0, 1])
        with pytest.raises(
            ValueError, match=r"The target label\(s\) \[9\] in y do not exist in the initial classes"
        ):
            self.fitted().partial_fit(self.X, np.where(self.y == 1, 9, self.y))

    def test_lengths_and_weights(self) -> None:
        with pytest.raises(ValueError, match="Found input variables with inconsistent numbers of samples"):
            self.fitted().partial_fit(self.X, self.y[:10])
        with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
            self.fitted().fit(self.X, self.y, sample_weight=np.full(60, -1.0))
        with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\), expected \(60,\)!"):
            self.fitted().fit(self.X, self.y, sample_weight=[1, 1, 1])

    def test_not_fitted(self) -> None:
        with pytest.raises(NotFittedError, match="This SketchedNewtonClassifier instance is not fitted yet"):
            SketchedNewtonClassifier().predict(self.X)
        for attribute in ("coef_", "intercept_", "t_", "loss_curve_", "classes_"):
            assert not hasattr(SketchedNewtonClassifier(), attribute)

    def test_wrong_parameters(self) -> None:
        newton = {"learner": "newton"}
        for parameters, message in [
            ({"learner": "oja"}, "learner='oja' is invalid: must be one of bank, newton"),
            ({"sketch": "fdd", **newton}, "sketch='fdd' is invalid"),
            ({"alpha": -1, **newton}, "alpha=-1 is invalid"),
            (
                {"alpha": 1e-4},
                "alpha=0.0001 is invalid: the default learner, NewtonBank, has nothing to tune",
            ),
            (
                {"alpha": 1e-4},
                "no penalty, as SGDClassifier's alpha is; leave alpha out, or set learner='newton'",
            ),
            ({"sketch": "oja"}, "sketch='oja' is invalid: .* set learner='newton'"),
            ({"diagonal": True}, "for SketchedNewton, which has diagonal"),
            ({"curvature": 1.0}, "for SketchedNewton, which has curvature"),
            ({"curvature_weight": 1.0}, "for SketchedNewton, which has curvature_weight"),
            ({"multi_class_sketch": "shared"}, "for SketchedNewton, which has multi_class_sketch"),
            ({"loss": "logstic"}, "did you mean 'logistic'"),
            ({"max_iter": 0}, "max_iter=0 is invalid"),
        ]:
            with pytest.raises(ValueError, match=message):
                SketchedNewtonClassifier(**parameters).fit(self.X, self.y)


def test_a_regressor_refuses_alpha_too() -> None:
    """Although scikit-learn's checks set it, of regressors that have the attribute."""
    X, y = load_diabetes(return_X_y=True)
    model = SketchedNewtonRegressor()
    assert not hasattr(model, "alpha")
    assert model.get_params()["alpha"] is None
    for tuned in (SketchedNewtonRegressor(alpha=0.01), clone(model).set_params(alpha=0.01)):
        assert tuned.alpha == clone(tuned).alpha == 0.01
        with pytest.raises(ValueError, match=r"alpha=0.01 is invalid: the default learner, NewtonBank"):
            tuned.fit(X, y)
        assert tuned.set_params(learner="newton").fit(X, y).score(X, y) > 0.3


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "squared_hinge"])
def test_clip_bounds_the_default_learner(loss: str) -> None:
    X, y = rows(300, 5, 2)
    model = SketchedNewtonClassifier(loss=loss, clip=0.5).fit(X, y)
    assert type(model._learners[0]).__name__ == "NewtonBank"
    assert abs(model.decision_function(X)).max() <= 0.5 + 1e-6


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("name", ["newton", "oja", "adagrad"])
def test_targets_of_any_scale(name: str, scale: float) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = clone(REGRESSORS[name]).set_params(random_state=0)
    plain = model.fit(X, y).score(X, y)
    assert plain > 0.35
    assert model.fit(X, scale * y).score(X, scale * y) == pytest.approx(plain, abs=1e-3)


@pytest.mark.parametrize("scale", [2.0**-20, 1.0, 2.0**20])
@pytest.mark.parametrize("sketch", ["rp", "fd", "rfd", None])
def test_rows_of_any_length(sketch: str | None, scale: float) -> None:
    """Pixels from 0 to 16: AdaGrad's steps, which have a length of their own, must be in the rows' unit."""
    X, y = load_digits(return_X_y=True)
    model = SketchedAdaGradRegressor(sketch=sketch, max_iter=1, random_state=0).fit(
        scale * X[:1200], y[:1200]
    )
    assert model.score(scale * X[1200:], y[1200:]) > 0.3
    if scale != 1.0:
        plain = clone(model).fit(X[:1200], y[:1200])
        np.testing.assert_allclose(scale * model.coef_, plain.coef_, rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("sketch", ["oja", "fd", "rfd", "pfd", "rp"])
def test_every_sketch_learns_digits_in_one_pass(sketch: str, loss: str) -> None:
    """Pixels from 0 to 16, nothing scaled, nothing tuned."""
    X, y = load_digits(return_X_y=True)
    shared = [{"multi_class_sketch": "shared"}] if sketch == "oja" else []
    for options in [{}, *shared]:
        model = SketchedNewtonClassifier(
            learner="newton", sketch=sketch, loss=loss, max_iter=1, random_state=0, **options
        )
        assert model.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.82


@pytest.mark.slow
def test_digits_in_one_pass_beat_tuned_gradient_descent() -> None:
    X, y = load_digits(return_X_y=True)
    ours = SketchedNewtonClassifier().fit(X[:1200], y[:1200]).score(X[1200:], y[1200:])
    peers = []
    for rate in (None, 1e-4, 1e-3, 1e-2, 1e-1):
        options = {} if rate is None else {"learning_rate": "constant", "eta0": rate}
        peer = SGDClassifier(random_state=0, **options).partial_fit(X[:1200], y[:1200], classes=range(10))
        peers.append(peer.score(X[1200:], y[1200:]))
    assert ours >= max(peers)


def test_importing_the_package_imports_no_ecosystem() -> None:
    code = (
        "import sys, sketchnewton; "
        "print([m for m in ('sklearn', 'river', 'torch', 'pandas', 'pyarrow', 'onnx') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


@pytest.mark.parametrize("estimator", [SketchedNewtonRegressor, SketchedAdaGradRegressor])
@pytest.mark.parametrize(
    ("part", "message"),
    [("X", "row 7, feature 1"), ("y", "label 1e\\+31 at position 7"), ("weights", "at row 7 is invalid")],
)
def test_rows_that_are_refused_have_the_numbers_they_were_given(
    estimator: Any, part: str, message: str
) -> None:
    """`fit` shuffles, and named the place of a row in its own order."""
    rng = np.random.default_rng(0)
    given = {"X": rng.normal(size=(50, 3)), "y": rng.normal(size=50), "weights": np.ones(50)}
    given[part][(7, 1) if part == "X" else 7] = 1e31
    with pytest.raises(ValueError, match=message):
        estimator(random_state=1).fit(given["X"], given["y"], sample_weight=given["weights"])
