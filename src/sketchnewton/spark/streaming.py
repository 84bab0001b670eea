"""Structured Streaming: every micro-batch is learned once, however often Spark hands it over."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sketchnewton.core.archive import ModelFileError
from sketchnewton.model import Model, shards
from sketchnewton.spark.training import Columns, trained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["StreamingLearner"]


class StreamingLearner:
    """What `foreachBatch` calls: learns each micro-batch, then saves the model together with the batch's number.

    Spark promises to hand over every batch at least once: after a failure the last one comes again. Model and
    number are in one file, which is replaced whole, so a batch that was saved is not learned twice and one that
    was not is learned again.

    * `path`: the model file; if it is there, learning continues from it.
    * `model`: what to begin with where there is none; default: the default learner, for numbers.
    * `featuresCol`, `labelCol`, `weightCol`: as those of `SketchedNewtonClassifier`.
    * `partitions`: how many learn a batch at a time; 1 learns rows in the order in which they come.

    `query = stream.writeStream.foreachBatch(learner).option("checkpointLocation", place).start()`
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model: Model | None = None,
        *,
        featuresCol: str = "features",
        labelCol: str = "label",
        weightCol: str | None = None,
        partitions: int = 1,
    ) -> None:
        self.path = os.fspath(path)
        self._columns = Columns(featuresCol or None, labelCol, weightCol)
        self._partitions = partitions
        self.epoch = -1
        """The last batch that was learned."""
        if os.path.exists(self.path):
            self.model = Model.load(self.path)
            self.epoch = self._epoch_of(self.model)
        else:
            self.model = shards.new_model() if model is None else model

    def __call__(self, batch: DataFrame, epoch: int) -> None:
        """Learn a micro-batch, unless it was learned before."""
        if epoch <= self.epoch:
            return
        learned = trained(batch, self.model, self._columns, rounds=1, partitions=self._partitions, seed=None)
        learned.notes = {**learned.notes, "spark_epoch": epoch}
        learned.save(self.path)
        self.model, self.epoch = learned, epoch

    def _epoch_of(self, model: Model) -> int:
        epoch = model.notes.get("spark_epoch", -1)
        if type(epoch) is not int:
            raise ModelFileError(f"{self.path}: its note on the last batch is damaged: use another copy")
        return epoch
