"""Turn Arrow's columns into the pandas ones that a source keeps: nothing interpreted, texts as they are spelt."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa


def frame_of(table: pa.Table) -> pd.DataFrame:
    """Arrow's columns as pandas ones: coded texts become categories, nulls of text become empty texts."""
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        elif pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("s"), safe=False)
        elif pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            column = _decoded(column)
        elif pa.types.is_null(column.type) or pa.types.is_time(column.type):
            column = column.cast(pa.string(), safe=False)
        elif pa.types.is_integer(column.type) and column.null_count:
            column = column.cast(pa.string())
        if pa.types.is_string(column.type):
            column = column.fill_null("")
        columns[name] = column
    frame = pa.table(columns).to_pandas(split_blocks=True, self_destruct=True)
    for name in frame.columns:
        if isinstance(frame[name].dtype, pd.CategoricalDtype) and frame[name].hasnans:
            known = frame[name].cat
            frame[name] = (frame[name] if "" in known.categories else known.add_categories("")).fillna("")
    return frame


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Bytes as text: UTF-8 where they are, else with a sign for each that is not."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.chunked_array(
            [pa.array([None if cell is None else cell.decode("utf-8", "replace") for cell in column.to_pylist()])]
        )
