//! [`Value`]: what a row holds and what a function chosen at run time answers, and how they are read and
//! written as text.

use std::borrow::Cow;
use std::io::Write as _;

use crate::ordered::Number;

/// A value of a type known at run time.
#[derive(Clone, PartialEq, Debug)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// A truth.
    Bool(bool),
    /// An integer.
    I64(i64),
    /// A sum of integers.
    I128(i128),
    /// A floating-point number.
    F64(f64),
    /// Text, or any bytes.
    Bytes(Cow<'a, [u8]>),
    /// Several values.
    List(Vec<Value<'a>>),
    /// Several values under others.
    Pairs(Vec<(Value<'a>, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// Text, or any bytes.
    pub fn bytes(bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// The number that this is, or that its text is.
    pub fn as_number(&self) -> Option<Number> {
        match self {
            Self::I64(value) => Some(Number::from(*value)),
            Self::F64(value) => Some(Number::from(*value)),
            Self::Bytes(bytes) => Number::parse(std::str::from_utf8(bytes).ok()?.trim()),
            _ => None,
        }
    }

    /// The truth that this is, or that its text is.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::I64(0) => Some(false),
            Self::I64(1) => Some(true),
            Self::Bytes(bytes) => match &bytes[..] {
                b"true" | b"t" | b"1" => Some(true),
                b"false" | b"f" | b"0" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// Its text.
    pub fn to_text(&self) -> Cow<'_, [u8]> {
        if let Self::Bytes(bytes) = self {
            return Cow::Borrowed(bytes);
        }
        let mut text = Vec::new();
        self.write_text(&mut text);
        Cow::Owned(text)
    }

    /// Appends its text: nothing for null; items of a list with `;` between them, and pairs as `key=value`.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        // Writing to memory cannot fail.
        let _ = match self {
            Self::Null => Ok(()),
            Self::Bool(value) => write!(out, "{value}"),
            Self::I64(value) => write!(out, "{value}"),
            Self::I128(value) => write!(out, "{value}"),
            Self::F64(value) if value.abs() < 1e16 => write!(out, "{value}"),
            Self::F64(value) => write!(out, "{value:e}"),
            Self::Bytes(bytes) => out.write_all(bytes),
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b";" } else { b"" });
                    item.write_text(out);
                }
                Ok(())
            }
            Self::Pairs(pairs) => {
                for (index, (key, value)) in pairs.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b";" } else { b"" });
                    key.write_text(out);
                    out.push(b'=');
                    value.write_text(out);
                }
                Ok(())
            }
        };
    }
}

impl From<Number> for Value<'_> {
    fn from(number: Number) -> Self {
        number.as_i64().map_or_else(|| Self::F64(number.as_f64()), Self::I64)
    }
}

impl From<u64> for Value<'_> {
    fn from(count: u64) -> Self {
        i64::try_from(count).map_or(Self::I128(count.into()), Self::I64)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, T::into)
    }
}

macro_rules! from {
    ($($type:ty => $case:ident;)*) => {$(
        impl From<$type> for Value<'_> {
            fn from(value: $type) -> Self {
                Self::$case(value.into())
            }
        }
    )*};
}
from! {
    bool => Bool;
    i64 => I64;
    i128 => I128;
    f64 => F64;
    Vec<u8> => Bytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_and_read_as_text() {
        let list = Value::List(vec![Value::from(1i64), Value::Null, Value::bytes(&b"x"[..])]);
        assert_eq!(&*list.to_text(), b"1;;x");
        let pairs = Value::Pairs(vec![
            (Value::bytes(&b"a"[..]), Value::from(0.5)),
            (Value::Null, Value::from(1e300)),
        ]);
        assert_eq!(&*pairs.to_text(), b"a=0.5;=1e300");
        assert_eq!(Value::bytes(&b" 12 "[..]).as_number(), Some(Number::from(12)));
        assert_eq!(Value::bytes(&b"1.5x"[..]).as_number(), None);
        assert_eq!(Value::bytes(&b"t"[..]).as_bool(), Some(true));
        assert_eq!(Value::from(u64::MAX), Value::I128(u64::MAX.into()));
    }
}
