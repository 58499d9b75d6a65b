"""Makes pyarrow.parquet and zstd.parquet beside this file. They are checked in, so that tests need no Python.

    pip install pyarrow
    python make_pyarrow.py
"""

import datetime
import decimal
import pathlib

import pyarrow
import pyarrow.parquet

HERE = pathlib.Path(__file__).parent
ROWS = 12

day = datetime.date(2024, 2, 28)
noon = datetime.datetime(2024, 2, 28, 12, 0, 0)
rows = range(ROWS)
table = pyarrow.table(
    {
        "name": pyarrow.array([None if n == 5 else ["oslo", "bern", ""][n % 3] for n in rows]),
        "small": pyarrow.array([n - 3 for n in rows], pyarrow.int8()),
        "big": pyarrow.array([2**63 + n % 2 for n in rows], pyarrow.uint64()),
        "half": pyarrow.array([None if n == 0 else n / 2 for n in rows]),
        "yes": pyarrow.array([n % 2 == 0 for n in rows]),
        "day": pyarrow.array([day + datetime.timedelta(days=n % 3) for n in rows]),
        "at": pyarrow.array([noon + datetime.timedelta(hours=n % 2) for n in rows], pyarrow.timestamp("us", "UTC")),
        "price": pyarrow.array([decimal.Decimal(n % 4) / 4 for n in rows], pyarrow.decimal128(9, 2)),
        "kind": pyarrow.array(["a" if n % 4 else "b" for n in rows]).dictionary_encode(),
        "list": pyarrow.array([[n] for n in rows]),
    }
)
pyarrow.parquet.write_table(table, HERE / "pyarrow.parquet", compression="snappy", row_group_size=5)
pyarrow.parquet.write_table(table.select(["name"]), HERE / "zstd.parquet", compression="zstd")
