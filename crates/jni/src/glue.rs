//! The border to Java: how natives are declared, and how arrays of bytes cross.

use std::path::PathBuf;

use jni::Env;
use jni::objects::JByteArray;
use jni::sys::jint;

use crate::failure::{Failure, Outcome};

/// Natives of `dev.forebay.Native`, each under its name in camel case. `[jbyte]` is `byte[]`, or null; an error or a panic
/// of a body becomes an exception.
macro_rules! natives {
    ($(fn $name:ident($env:ident $(, $arg:ident: $type:tt)* $(,)?) -> $out:tt $body:block)*) => {$(
        fn $name<'local>(
            $env: &mut jni::Env<'local>,
            _class: jni::objects::JClass<'local>,
            $($arg: $crate::glue::taken!('local $type)),*
        ) -> $crate::failure::Outcome<$crate::glue::taken!('local $out)> $body

        const _: jni::NativeMethod<'static> = {
            use $crate::failure::Throw;
            jni::native_method! {
                java_type = "dev.forebay.Native",
                static extern fn $name($($arg: $type),*) -> $out,
                error_policy = Throw,
            }
        };
    )*};
}

/// A type of a native's as its body has it.
macro_rules! taken {
    ($local:lifetime [jbyte]) => { jni::objects::JByteArray<$local> };
    ($local:lifetime void) => { () };
    ($local:lifetime $number:ident) => { jni::sys::$number };
}

pub(crate) use {natives, taken};

/// Whether it is null to Java.
pub(crate) fn is_none(array: &JByteArray<'_>) -> bool {
    array.as_raw().is_null()
}

/// A copy of an array that must be one.
pub(crate) fn bytes(env: &Env<'_>, array: &JByteArray<'_>, name: &str) -> Outcome<Vec<u8>> {
    match is_none(array) {
        true => Err(Failure::invalid(format!("{name} is null"))),
        false => Ok(env.convert_byte_array(array)?),
    }
}

/// The same of one that may be null.
pub(crate) fn optional(env: &Env<'_>, array: &JByteArray<'_>) -> Outcome<Option<Vec<u8>>> {
    if is_none(array) { Ok(None) } else { Ok(Some(env.convert_byte_array(array)?)) }
}

/// A copy of the first bytes of an array.
pub(crate) fn front(env: &Env<'_>, array: &JByteArray<'_>, bytes: jint) -> Outcome<Vec<u8>> {
    let count =
        usize::try_from(bytes).ok().filter(|count| array.len(env).is_ok_and(|length| *count <= length));
    let count = count.ok_or_else(|| Failure::invalid(format!("an array has no {bytes} bytes")))?;
    let mut signed = vec![0; count];
    array.get_region(env, 0, &mut signed)?;
    Ok(signed.into_iter().map(i8::cast_unsigned).collect())
}

/// A text.
pub(crate) fn text(env: &Env<'_>, array: &JByteArray<'_>, name: &str) -> Outcome<String> {
    let bytes = bytes(env, array, name)?;
    String::from_utf8(bytes).map_err(|_| Failure::invalid(format!("{name} is not UTF-8")))
}

/// A path, which is a text to Java, too.
pub(crate) fn path(env: &Env<'_>, array: &JByteArray<'_>) -> Outcome<PathBuf> {
    text(env, array, "path").map(PathBuf::from)
}

/// An array of Java's with these bytes.
pub(crate) fn given<'local>(env: &mut Env<'local>, bytes: &[u8]) -> Outcome<JByteArray<'local>> {
    if i32::try_from(bytes.len()).is_err() {
        return Err(Failure::invalid(
            "the answer is longer than an array of Java's may be; ask for fewer keys at once",
        ));
    }
    Ok(env.byte_array_from_slice(bytes)?)
}

/// The same, or null for nothing.
pub(crate) fn given_or_null<'local>(
    env: &mut Env<'local>,
    bytes: Option<impl AsRef<[u8]>>,
) -> Outcome<JByteArray<'local>> {
    bytes.map_or_else(|| Ok(JByteArray::default()), |bytes| given(env, bytes.as_ref()))
}
