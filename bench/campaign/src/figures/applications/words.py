"""Counts words, as `tr`, `sort` and `uniq` do, by DuckDB: every line is words with one space between.

usage: words.py TEXT GROUPS THREADS MEMORY
"""

import sys

import duckdb

text, groups, threads, memory = sys.argv[1:]
con = duckdb.connect(config={"threads": threads, "memory_limit": memory, "temp_directory": "duckdb-temp"})
con.execute("set enable_progress_bar = false")
con.execute("set preserve_insertion_order = false")
con.execute(
    f"""
    copy (
        select word, count(*) from (
            select unnest(string_split(line, ' ')) as word
            from read_csv('{text}', columns = {{'line': 'varchar'}}, delim = '\x01', quote = '', escape = '',
                header = false, auto_detect = false, max_line_size = 100000000)
        )
        group by word order by word
    ) to '{groups}' (format csv, delimiter '\t', header false, quote '', escape '')
    """
)
