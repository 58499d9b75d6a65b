//! Arrow's C interface: all that is unsafe of this crate. Structures are moved out of where they stand, and released ones are
//! left behind, as the interface says.
//!
//! **Invariant:** the address of a structure is taken to be what the interface says it is, with buffers as long as it tells,
//! which nobody can check; all else that Java passes is checked.

use std::mem::align_of;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{ArrayRef, RecordBatchReader, make_array};
use arrow_schema::{Schema, SchemaRef};
use forebay_groups::Caught;
use jni::sys::jlong;

use crate::failure::{Failure, Outcome};

/// The place of a structure.
fn place<T>(address: jlong, name: &str) -> Outcome<*mut T> {
    let place = address as usize;
    if place == 0 || !place.is_multiple_of(align_of::<T>()) {
        return Err(Failure::invalid(format!("{address} is no address of a structure {name}")));
    }
    Ok(std::ptr::with_exposed_provenance_mut(place))
}

fn was_taken(name: &str) -> Failure {
    Failure::invalid(format!("the structure {name} was released, or taken before"))
}

/// The array at an address, a structure of the columns, and the schema at another.
pub(crate) fn array(array: jlong, schema: jlong) -> Outcome<(ArrayRef, SchemaRef)> {
    let array = place::<FFI_ArrowArray>(array, "ArrowArray")?;
    let schema = place::<FFI_ArrowSchema>(schema, "ArrowSchema")?;
    // SAFETY: the caller vouches for both addresses, and that nobody else uses them meanwhile.
    let (array, schema) = unsafe { (FFI_ArrowArray::from_raw(array), FFI_ArrowSchema::from_raw(schema)) };
    if array.is_released() {
        return Err(was_taken("ArrowArray"));
    }
    if schema.release().is_none() {
        return Err(was_taken("ArrowSchema"));
    }
    let fields = Schema::try_from(&schema)?;
    // SAFETY: the two were given together, so the schema describes the array; neither is released.
    let data = unsafe { from_ffi(array, &schema) }?;
    Ok((make_array(data), SchemaRef::new(fields)))
}

/// The stream at an address.
pub(crate) fn stream(address: jlong) -> Outcome<ArrayStreamReader> {
    let stream = place::<FFI_ArrowArrayStream>(address, "ArrowArrayStream")?;
    // SAFETY: as above.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream) };
    if stream.release().is_none() {
        return Err(was_taken("ArrowArrayStream"));
    }
    Ok(ArrayStreamReader::try_new(stream)?)
}

/// Puts a stream where there is room for one.
pub(crate) fn export(reader: Box<dyn RecordBatchReader + Send>, address: jlong) -> Outcome<()> {
    let room = place::<FFI_ArrowArrayStream>(address, "ArrowArrayStream")?;
    // SAFETY: the caller vouches that there is room, and that what stands there needs no release.
    unsafe { room.write(FFI_ArrowArrayStream::new(Box::new(Caught(reader)))) };
    Ok(())
}
