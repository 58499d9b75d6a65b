"""Makes jumps.parquet beside this file. It is checked in, so that tests need no Python.

    pip install duckdb==2.0.0
    python make_duckdb.py
"""

import pathlib

import duckdb

HERE = pathlib.Path(__file__).parent

jumps = "(case when i % 2 = 0 then -2147483648 + i else 2147483647 - i end)::int"
duckdb.sql(
    f"""
    copy (
        select (i % 3)::int as k, case when i % 7 = 3 then null else {jumps} end as v, {jumps} as w
        from range(300) r(i)
    ) to '{HERE / "jumps.parquet"}' (format parquet, parquet_version v2, compression uncompressed)
    """
)
