//! Arrow's C interface, and which interpreter this is: all that is unsafe of this crate.
//!
//! Data come in capsules that `__arrow_c_stream__` and `__arrow_c_array__` give, and leave in such. A capsule's structure
//! is moved out of it, and one that is released is left behind, as the interface says.
//!
//! **Invariant:** what a capsule of the right name holds is taken to be what the interface says it is, which nobody can
//! check; all else is.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatchReader, make_array};
use arrow_schema::{Field, Schema, SchemaRef};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::failure::{Failure, Outcome};
use crate::home::calling;

const STREAM: &CStr = c"arrow_array_stream";
const ARRAY: &CStr = c"arrow_array";
const SCHEMA: &CStr = c"arrow_schema";

/// Whether this is the interpreter that the process began with.
pub(crate) fn is_main_interpreter(_py: Python<'_>) -> bool {
    // SAFETY: the interpreter's lock is held, so there is one, and it stays while it is asked for its number.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0 }
}

/// Does something with the interpreter's lock held, whether this thread holds it or not; nothing where there is no
/// interpreter any more. PyO3 counts what it has attached itself: amid calls of its own it takes the lock to be held, also
/// where a library that reads a stream of ours has let go of it.
pub(crate) fn attached<T>(act: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    // SAFETY: this may be asked at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return None;
    }
    // SAFETY: there is an interpreter; what is taken here is let go of by `Ensured`, on this thread and in order.
    let _ensured = Ensured(unsafe { ffi::PyGILState_Ensure() });
    Python::try_attach(act)
}

/// The same for a call of a function of Python's, which needs the interpreter.
pub(crate) fn called<T>(act: impl FnOnce(Python<'_>) -> Outcome<T>) -> Outcome<T> {
    calling(|| attached(act)).unwrap_or_else(|| Err(Failure::invalid("there is no interpreter any more")))
}

struct Ensured(ffi::PyGILState_STATE);

impl Drop for Ensured {
    fn drop(&mut self) {
        // SAFETY: it was taken by this thread, and all that was taken since was let go of.
        unsafe { ffi::PyGILState_Release(self.0) }
    }
}

/// What a capsule of this name holds.
fn held(capsule: &Bound<'_, PyAny>, name: &'static CStr) -> Outcome<NonNull<c_void>> {
    let capsule = capsule.cast::<PyCapsule>().map_err(PyErr::from)?;
    Ok(capsule.pointer_checked(Some(name))?)
}

/// The stream of an object that has `__arrow_c_stream__`.
pub(crate) fn stream_of(data: &Bound<'_, PyAny>) -> Outcome<FFI_ArrowArrayStream> {
    let capsule = data.call_method0("__arrow_c_stream__")?;
    let stream = held(&capsule, STREAM)?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds such a structure, alive as long as the capsule, which we hold; the
    // interpreter's lock is held, so nobody else moves it out. What is left behind is a released one, which its
    // destructor passes by.
    Ok(unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) })
}

/// The array of an object that has `__arrow_c_array__`, and its schema: of record batches a structure.
pub(crate) fn array_of(data: &Bound<'_, PyAny>) -> Outcome<(ArrayRef, FFI_ArrowSchema)> {
    let capsules = data.call_method0("__arrow_c_array__")?;
    let (of_schema, of_array) = (capsules.get_item(0)?, capsules.get_item(1)?);
    let schema = held(&of_schema, SCHEMA)?.cast::<FFI_ArrowSchema>();
    let array = held(&of_array, ARRAY)?.cast::<FFI_ArrowArray>();
    // SAFETY: as above; both capsules are held here.
    let (schema, array) =
        unsafe { (FFI_ArrowSchema::from_raw(schema.as_ptr()), FFI_ArrowArray::from_raw(array.as_ptr())) };
    if schema.release().is_none() || array.is_released() {
        return Err(Failure::invalid("an Arrow array that was taken before"));
    }
    // SAFETY: the two were given together, so the schema describes the array; neither is released.
    let data = unsafe { from_ffi(array, &schema) }?;
    Ok((make_array(data), schema))
}

/// The schema of an object that has `__arrow_c_schema__`.
pub(crate) fn schema_of(data: &Bound<'_, PyAny>) -> Outcome<SchemaRef> {
    let capsule = data.call_method0("__arrow_c_schema__")?;
    let schema = held(&capsule, SCHEMA)?.cast::<FFI_ArrowSchema>();
    // SAFETY: as above.
    let schema = unsafe { FFI_ArrowSchema::from_raw(schema.as_ptr()) };
    if schema.release().is_none() {
        return Err(Failure::invalid("an Arrow schema that was taken before"));
    }
    Ok(Schema::try_from(&schema)?.into())
}

/// The type of an object that has `__arrow_c_schema__`.
pub(crate) fn field_of(data: &Bound<'_, PyAny>) -> Outcome<Field> {
    let capsule = data.call_method0("__arrow_c_schema__")?;
    let schema = held(&capsule, SCHEMA)?.cast::<FFI_ArrowSchema>();
    // SAFETY: as above.
    let schema = unsafe { FFI_ArrowSchema::from_raw(schema.as_ptr()) };
    if schema.release().is_none() {
        return Err(Failure::invalid("an Arrow schema that was taken before"));
    }
    Ok(Field::try_from(&schema)?)
}

/// A capsule of record batches.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// A capsule of a schema.
pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> Outcome<Bound<'py, PyCapsule>> {
    Ok(PyCapsule::new_with_value(py, FFI_ArrowSchema::try_from(schema)?, SCHEMA)?)
}

/// A capsule of the schema of an array.
pub(crate) fn field_capsule<'py>(py: Python<'py>, field: &Field) -> Outcome<Bound<'py, PyCapsule>> {
    Ok(PyCapsule::new_with_value(py, FFI_ArrowSchema::try_from(field)?, SCHEMA)?)
}

/// Capsules of an array: its schema, and its data.
pub(crate) fn array_capsules<'py>(
    py: Python<'py>,
    array: &dyn Array,
) -> Outcome<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let (array, schema) = to_ffi(&array.to_data())?;
    Ok((PyCapsule::new_with_value(py, schema, SCHEMA)?, PyCapsule::new_with_value(py, array, ARRAY)?))
}
