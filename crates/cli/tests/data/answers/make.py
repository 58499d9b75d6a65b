"""Makes the files beside this one: rows, and what DuckDB answers of them. They are checked in, so that tests need neither
Python nor DuckDB.

    pip install duckdb pyarrow numpy
    python make.py
"""

import pathlib
import random

import duckdb
import numpy
import pyarrow
import pyarrow.parquet

D = str(pathlib.Path(__file__).parent) + "/"
c=duckdb.connect(); r=random.Random(19)
c.execute("create table t(k varchar,u ubigint,i bigint,h hugeint,m decimal(38,2),n decimal(18,4),d double,f float,b boolean,s varchar,day date)")
rows=[]
for x in range(400):
    k=f"g{r.randrange(7)}"
    o=lambda v: None if r.random()<.1 else v
    d=r.choice([0.0,-0.0,r.uniform(-1e3,1e3),r.uniform(-1,1)*1e-7,1e15+r.randrange(100),float(r.randrange(-50,50))])
    rows.append((k,o(2**64-1-r.randrange(50)),o(r.randrange(-2**63,2**63)),o(r.randrange(-2**120,2**120)),
      o(f"{r.randrange(-10**35,10**35)}.{r.randrange(100):02d}"),o(f"{r.randrange(-10**9,10**9)}.{r.randrange(10**4):04d}"),
      o(d),o(r.uniform(-10,10)),o(r.random()<.5),o(r.choice(["a;b","a","b","x=y","…","\\"])),o(f"{r.randrange(1,9999):04d}-0{r.randrange(1,10)}-1{r.randrange(10)}")))
c.executemany("insert into t values (?,?,?,?,?,?,?,?,?,?,?)",rows)
c.execute(f"copy t to '{D}rows.csv' (header)")
c.execute(f"copy (select * exclude(h) from t) to '{D}rows.parquet' (format parquet, compression zstd, row_group_size 2048)")
Q={'sum:u':'sum(u)','min:u':'min(u)','max:u':'max(u)','bit_xor:u':'bit_xor(u)','bit_and:u':'bit_and(u)','sum:i':'sum(i)','min:i':'min(i)','bit_or:i':'bit_or(i)',
 'sum:h':'sum(h)','max:h':'max(h)','min:h':'min(h)','sum:m':'sum(m)','min:m':'min(m)','max:m':'max(m)','sum:n':'sum(n)','max:n':'max(n)',
 'bool_and:b':'bool_and(b)','count_if:b':'count_if(b)','count:s':'count(s)','min:d':'min(d)','max:d':'max(d)','min:f':'min(f)','max:f':'max(f)','avg:f':'avg(f)','avg:d':'avg(d)','distinct:s':'count(distinct s)',
 'min_text:day':'min(day)'}
fns=list(Q)
res=c.execute("select k,"+",".join(Q[f] for f in fns)+" from t group by k order by k").fetchall()
def show(v):
    if v is None: return '\\N'
    if isinstance(v,bool): return 'true' if v else 'false'
    return str(v)
with open(D+'duckdb.tsv','w') as f:
    f.write('\t'.join(['k']+fns)+'\n')
    for row in res: f.write('\t'.join(show(v) for v in row)+'\n')

# Types that DuckDB does not write, and other compressions.
kinds = pyarrow.table({
    "place": pyarrow.array([{"city": "Oslo", "at": {"x": 1}}, None, {"city": "Bern", "at": {"x": -2}}]),
    "half": pyarrow.array(numpy.array([0.1, -2.5, 65504], numpy.float16)),
    "zero": pyarrow.array([0.0, -0.0, 0.0]),
    "day": pyarrow.array([-800002, 2932897, 0], pyarrow.date32()),
    "tags": pyarrow.array([["a"], [], None]),
})
pyarrow.parquet.write_table(kinds, D + "kinds.parquet", compression="brotli")
