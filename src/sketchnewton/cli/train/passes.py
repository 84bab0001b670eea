"""Pass after pass over the data: the first parses, later ones read what it left in a cache."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator

from sketchnewton import __version__
from sketchnewton.cli.io.console import Console
from sketchnewton.cli.io.data_source import DataSource, watched
from sketchnewton.cli.io.errors import usage_error
from sketchnewton.cli.io.signals import GracefulStop, Stopped
from sketchnewton.cli.options.data import CACHE_SUFFIX
from sketchnewton.core.hints import TYPE_CHECKING, Any
from sketchnewton.core.types import Header
from sketchnewton.streams import Batch

if TYPE_CHECKING:
    from sketchnewton.streams.cache import CacheWriter

__all__ = ["Passes", "cache_place"]


def cache_place(args: argparse.Namespace, data: DataSource, passes: int) -> str | None:
    """Where the parsed rows are kept for `passes` over the data, if anywhere."""
    if args.no_cache:
        if args.cache is not None:
            raise usage_error("--cache and --no-cache exclude each other")
        return None
    if args.cache is not None:
        return str(args.cache)
    return None if passes == 1 or data.identity() is None else data.paths[0] + CACHE_SUFFIX


class Passes:
    """The batches of `data`, as often as asked for.

    A cache that agrees with the data and the way it is read is used from the start, unless the names of features
    are wanted, which it does not hold.
    """

    def __init__(self, data: DataSource, cache: str | None, console: Console, stop: GracefulStop) -> None:
        self.cache = cache
        self.from_cache = False  # the last pass
        self._data = data
        self._console = console
        self._stop = stop
        self._parsed = False
        self._key: dict[str, Any] = {}

    def batches(self) -> Iterator[Batch]:
        """One pass; a signal ends it early."""
        self.from_cache = False
        if self.cache is None:
            yield from self._data.read(self._console, self._stop)
            return
        from sketchnewton.streams.cache import open_cache  # only where there is one

        if not self._parsed:
            files = self._data.identity() or [["a pipe", os.getpid(), time.time_ns()]]
            self._key = {"version": __version__, "files": files, "way": self._data.way()}
        if self._parsed or self._data.names is None:
            try:
                cached = self._stop.wait(open_cache, self.cache, self._key, prefetch=self._data.prefetch)
            except Stopped:
                return
            if cached is not None and not _are_facts(cached[1]):
                cached[0].close()
                cached = None
            if cached is not None:
                self.from_cache = True
                reader, facts = cached
                self._data.skipped, self._data.first_error = facts["skipped"], facts["first_error"]
                self._data.kinds = facts["kinds"]
                self._data.misfits, self._data.first_misfit = facts["misfits"], facts["first_misfit"]
                yield from watched(reader, self._console, self._stop)
                return
        yield from self._parse(self.cache)

    def _parse(self, cache: str) -> Iterator[Batch]:
        """Parse the data and keep its rows; a cache that cannot be written is done without."""
        writer = self._writer(cache)
        try:
            for batch in self._data.read(self._console, self._stop):
                if writer is not None:
                    try:
                        writer.write(batch)
                    except OSError as error:
                        self._go_without(cache, error)
                        writer.close()
                        writer = None
                yield batch
                del batch  # as in `watched`
            if writer is not None and self._stop.signal is None:
                self._commit(cache, writer)
        finally:
            if writer is not None:
                writer.close()

    def _writer(self, cache: str) -> CacheWriter | None:
        from sketchnewton.streams.cache import CacheWriter, open_cache

        stale = open_cache(cache, {}, prefetch=False)  # refuses to overwrite what is no cache
        if stale is not None:
            stale[0].close()
        try:
            return CacheWriter(cache, self._key)
        except OSError as error:
            self._go_without(cache, error)
            return None

    def _commit(self, cache: str, writer: CacheWriter) -> None:
        if self._data.identity() not in (None, self._key["files"]):
            self._console.line(f"skn: warning: {self._data.name} changed while it was read: no cache is kept")
            return
        try:
            writer.commit(
                {
                    "skipped": self._data.skipped,
                    "first_error": self._data.first_error,
                    "kinds": self._data.kinds,
                    "misfits": self._data.misfits,
                    "first_misfit": self._data.first_misfit,
                }
            )
            self._parsed = True
        except OSError as error:
            self._go_without(cache, error)

    def _go_without(self, cache: str, error: OSError) -> None:
        if self._data.identity() is None:
            raise OSError(error.errno, f"cannot write the cache: {error.strerror}", cache) from None
        self._console.line(
            f"skn: warning: {cache}: cannot write the cache: {error.strerror}; continuing without it"
        )
        self.cache = None


def _are_facts(facts: Header) -> bool:
    """Are these what `_commit` gave, so that the cache need not be built again?"""
    counts = [facts.get(name) for name in ("skipped", "misfits")]
    firsts = [facts.get(name) for name in ("first_error", "first_misfit")]
    kinds = facts.get("kinds")
    return (
        all(type(count) is int and count >= 0 for count in counts)
        and all(first is None or isinstance(first, str) for first in firsts)
        and (isinstance(kinds, dict) and all(isinstance(kind, str) for kind in kinds.values()))
    )
