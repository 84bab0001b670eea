"""Which column of a table is the label, the weight, the tag, and which are features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sketchnewton.core.hints import NamedTuple
from sketchnewton.features.columns import Columns, meant, shown_names

__all__ = ["Roles"]


class Roles(NamedTuple):
    """Which of a table's columns is what."""

    label: str | None
    weight: str | None
    tag: str | None
    features: tuple[str, ...]

    @classmethod
    def of(
        cls, names: Sequence[str], columns: Columns, joined: Iterable[str] = (), only_labels: bool = False
    ) -> Roles:
        """Find the columns of a table; ``ValueError`` names the first that is not there.

        ``joined`` must be features: those with interactions.
        """
        doubles = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
        if doubles:
            raise ValueError(f"column names must differ, but '{min(doubles)}' comes twice")
        for name in columns.named:
            if name not in names and name not in columns.optional:
                raise ValueError(
                    f"no column is named '{name}'{meant(name, names)}; there are {shown_names(names)}"
                )
        roles = columns.label_among(names), columns.weight_among(names), columns.tag_among(names)
        taken = {*roles, *columns.drop}
        found = cls(*roles, tuple(name for name in names if name not in taken))
        for name in joined:
            if name not in found.features:
                raise ValueError(f"no column of features is named '{name}'{meant(name, found.features)}")
        return cls(found.label, None, None, ()) if only_labels else found
