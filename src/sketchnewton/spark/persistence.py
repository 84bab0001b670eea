"""Fitted models through Spark's ML persistence: metadata as Spark writes them, the model's file as one row."""

from __future__ import annotations

from pyspark.ml.util import (
    DefaultParamsReader,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)

from sketchnewton.core.persistence import Persistent

__all__ = ["Savable"]


class _Writer(MLWriter):
    def __init__(self, instance: Savable) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:
        """Write metadata and the model below `path`."""
        DefaultParamsWriter.saveMetadata(self._instance, path, self.sparkSession)
        rows = [(bytearray(self._instance._saved()),)]
        self.sparkSession.createDataFrame(rows, "model binary").coalesce(1).write.parquet(f"{path}/model")


class _Reader(MLReader):
    def __init__(self, cls: type[Savable]) -> None:
        super().__init__()
        self._cls = cls

    def load(self, path: str) -> Savable:
        """What was saved below `path`."""
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        row = self.sparkSession.read.parquet(f"{path}/model").first()
        instance = self._cls()
        instance._resetUid(metadata["uid"])
        instance._restored(bytes(row["model"]))
        DefaultParamsReader.getAndSetParams(instance, metadata)
        return instance


class Savable(MLReadable, MLWritable):
    """A fitted model around a `model`, which has a file."""

    model: Persistent

    def _saved(self) -> bytes:
        return self.model.to_bytes()

    def _restored(self, data: bytes) -> None:
        self.model = Persistent.from_bytes(data)

    def write(self) -> MLWriter:
        """What saves it."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader:
        """What loads it."""
        return _Reader(cls)
