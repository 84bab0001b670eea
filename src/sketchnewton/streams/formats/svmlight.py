"""svmlight/LIBSVM text: ``label [qid:N] index:value index:value … [# comment]``."""

from __future__ import annotations

from sketchnewton import _native
from sketchnewton.core.batch import Batch
from sketchnewton.core.types import np
from sketchnewton.streams.lines import LineError, line_parser
from sketchnewton.streams.reader import Parse, ReadOptions
from sketchnewton.streams.writer import BatchWriter, pairs_of, short


def svmlight_parser(options: ReadOptions) -> Parse:
    """The format, for a ``BatchReader``. Features are in the default namespace."""

    def parse_text(text: memoryview, line: int) -> tuple[Batch, int, LineError | None]:
        indptr, indices, data, labels, columns, lines, error = _native.parse_svmlight(
            text, options.max_line_bytes
        )
        batch = Batch(indptr, indices, data, labels, columns=columns, first_line=line)
        return options.features.indexed(batch, options.names), lines, error

    return line_parser(parse_text, options, comment=b"#")


class SvmlightWriter(BatchWriter):
    """Has labels and numbered features, and nothing else."""

    format = "svmlight"

    def _write(self, batch: Batch) -> None:
        for what, there in (
            ("weights", batch.weights is not None),
            ("tags", batch.tags is not None),
            ("base predictions", batch.base is not None),
            ("rows without a label", bool(np.isnan(batch.labels).any())),
            ("names", self._names is not None),
        ):
            if there:
                raise self._refuse(what)
        lines = zip(batch.labels.tolist(), pairs_of(batch), strict=True)
        self._file.write(b"".join(b"%b%b\n" % (short(label).encode(), pairs) for label, pairs in lines))


PARSERS = {"svmlight": svmlight_parser}
WRITERS = {"svmlight": SvmlightWriter}
