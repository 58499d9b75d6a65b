//! [`Pool`]: one memory and a few threads for many databases.

use pyo3::prelude::*;

use crate::database::plain;
use crate::failure::Outcome;
use crate::home::Home;
use crate::options::size;

/// One memory and a few threads for many databases of a process: give it to each ``open``.
#[pyclass(frozen, module = "forebay")]
pub(crate) struct Pool(Home<forebay::Pool>);

impl Pool {
    pub(crate) fn shared(&self) -> Outcome<&forebay::Pool> {
        self.0.get()
    }
}

#[pymethods]
impl Pool {
    #[new]
    #[pyo3(signature = (memory, threads=2))]
    fn new(memory: &Bound<'_, PyAny>, threads: usize) -> Outcome<Self> {
        Ok(Self(Home::new(forebay::Pool::new(size("memory", memory)?, threads)?)))
    }

    /// How many bytes a second background work of all databases goes through; 0 for no limit.
    fn set_background_rate(&self, py: Python<'_>, bytes_a_second: &Bound<'_, PyAny>) -> Outcome<()> {
        let (pool, bytes) = (self.0.get()?, size("bytes_a_second", bytes_a_second)?);
        Ok(py.detach(|| pool.set_background_rate(bytes))?)
    }

    /// Who has how much of the memory, in bytes, and what the threads are at.
    fn stats<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyAny>> {
        let pool = self.0.get()?;
        plain(py, &py.detach(|| pool.stats()))
    }
}
