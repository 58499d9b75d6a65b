//! [`Value`]: what a row holds and what a function chosen at run time answers, and how they are read and
//! written as text.

use std::borrow::Cow;
use std::io::Write as _;

use crate::digits::{write_fraction, write_int};
use crate::ordered::Number;

/// What stands in lists for values that were left out.
pub(crate) const CUT: &[u8] = "…".as_bytes();

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
    /// A floating-point number of 32 bits.
    F32(f32),
    /// A floating-point number.
    F64(f64),
    /// A decimal number that none of these is, as its text.
    Decimal(Cow<'a, str>),
    /// Text, or any bytes.
    Bytes(Cow<'a, [u8]>),
    /// Several values.
    List(Vec<Value<'a>>),
    /// Stands in a list for values that were left out.
    Cut,
    /// Several values under others.
    Pairs(Vec<(Value<'a>, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// Text, or any bytes.
    pub fn bytes(bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::Bytes(bytes.into())
    }

    /// The number that this is, or that its text is; one of more than 38 digits is rounded.
    pub fn as_number(&self) -> Option<Number> {
        self.as_number_by(Number::parse)
    }

    /// The same, but for a text that would have to be rounded.
    pub fn as_exact_number(&self) -> Option<Number> {
        self.as_number_by(Number::parse_exact)
    }

    fn as_number_by(&self, parse: fn(&str) -> Option<Number>) -> Option<Number> {
        match self {
            Self::I64(value) => Some(Number::from(*value)),
            Self::I128(value) => Some(Number::from(*value)),
            // By its own shortest text, and not by that of what is nearest in 64 bits.
            Self::F32(value) => parse(&format!("{value:e}")),
            Self::F64(value) => Some(Number::from(*value)),
            Self::Decimal(text) => parse(text),
            Self::Bytes(bytes) => parse(std::str::from_utf8(bytes).ok()?.trim()),
            _ => None,
        }
    }

    /// The nearest floating-point number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::F32(value) => Some(f64::from(*value)),
            Self::F64(value) => Some(*value),
            Self::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.trim().parse().ok(),
            value => value.as_number().map(Number::as_f64),
        }
    }

    /// The truth that this is, or that its text is: `true`, `t`, `yes`, `y`, `1` or `false`, `f`, `no`, `n`, `0`, in
    /// letters of either case.
    pub fn as_bool(&self) -> Option<bool> {
        let is_any =
            |text: &[u8], names: &[&str]| names.iter().any(|name| text.eq_ignore_ascii_case(name.as_bytes()));
        match self {
            Self::Bool(value) => Some(*value),
            Self::I64(0) => Some(false),
            Self::I64(1) => Some(true),
            Self::Bytes(text) if is_any(text, &["true", "t", "yes", "y", "1"]) => Some(true),
            Self::Bytes(text) if is_any(text, &["false", "f", "no", "n", "0"]) => Some(false),
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

    /// Appends its text: nothing for null; items of a list with `;` between them, and pairs as `key=value`. In items
    /// and keys stands `\;` for `;`, `\\` for `\`, and `\…` for a text that is `…`, which stands for what was left out.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        // Writing to memory cannot fail.
        let _ = match self {
            Self::Null => Ok(()),
            Self::Bool(value) => write!(out, "{value}"),
            Self::I64(value) => return write_int(*value, out),
            Self::I128(value) => match i64::try_from(*value) {
                Ok(value) => return write_int(value, out),
                Err(_) => write!(out, "{value}"),
            },
            Self::F32(value) if value.abs() < 1e16 => write!(out, "{value}"),
            Self::F32(value) => write!(out, "{value:e}"),
            Self::F64(value) if write_fraction(*value, out) => Ok(()),
            Self::F64(value) if value.abs() < 1e16 => write!(out, "{value}"),
            Self::F64(value) => write!(out, "{value:e}"),
            Self::Decimal(text) => out.write_all(text.as_bytes()),
            Self::Bytes(bytes) => out.write_all(bytes),
            Self::Cut => out.write_all(CUT),
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b";" } else { b"" });
                    item.write_item(out);
                }
                Ok(())
            }
            Self::Pairs(pairs) => {
                for (index, (key, value)) in pairs.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b";" } else { b"" });
                    key.write_item(out);
                    out.push(b'=');
                    value.write_item(out);
                }
                Ok(())
            }
        };
    }

    /// Appends its text as that of an item.
    fn write_item(&self, out: &mut Vec<u8>) {
        let Self::Bytes(text) = self else { return self.write_text(out) };
        if **text == *CUT {
            out.push(b'\\');
        }
        for byte in text.iter() {
            if matches!(byte, b';' | b'\\') {
                out.push(b'\\');
            }
            out.push(*byte);
        }
    }
}

impl From<Number> for Value<'_> {
    fn from(number: Number) -> Self {
        match number.as_i128() {
            Some(whole) => i64::try_from(whole).map_or(Self::I128(whole), Self::I64),
            None if Number::from(number.as_f64()) == number => Self::F64(number.as_f64()),
            None => Self::Decimal(number.to_string().into()),
        }
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
        assert_eq!(Value::bytes(&b" 12 "[..]).as_number(), Some(Number::from(12_i64)));
        assert_eq!(Value::bytes(&b"1.5x"[..]).as_number(), None);
        for (text, truth) in
            [("t", true), ("True", true), ("TRUE", true), ("yEs", true), ("Y", true), ("1", true)]
        {
            assert_eq!(Value::bytes(text.as_bytes()).as_bool(), Some(truth), "{text}");
        }
        for (text, truth) in [("f", false), ("False", false), ("FALSE", false), ("No", false), ("0", false)] {
            assert_eq!(Value::bytes(text.as_bytes()).as_bool(), Some(truth), "{text}");
        }
        for text in ["", "on", "off", "2", " true", "1.0", "-1"] {
            assert_eq!(Value::bytes(text.as_bytes()).as_bool(), None, "{text}");
        }
        assert_eq!(Value::from(u64::MAX), Value::I128(u64::MAX.into()));
        let exact = Value::from(Number::parse("12345678901234567.89").unwrap());
        assert_eq!(&*exact.to_text(), b"12345678901234567.89");
        assert_eq!(Value::from(Number::parse("0.5").unwrap()), Value::F64(0.5));
        assert_eq!(Value::F32(0.1).as_number(), Number::parse("0.1"));
        assert_eq!(Value::F32(0.1).as_f64(), Some(f64::from(0.1_f32)));
    }

    /// What two lists hold can be told from their texts.
    #[test]
    fn items_are_told_apart() {
        let list = |items: &[&'static str]| {
            Value::List(items.iter().map(|item| Value::bytes(item.as_bytes())).collect())
        };
        let text = |value: &Value<'_>| String::from_utf8(value.to_text().into_owned()).unwrap();
        assert_eq!(text(&list(&["x;y"])), "x\\;y");
        assert_eq!(text(&list(&["x", "y"])), "x;y");
        assert_eq!(text(&list(&["a\\", "b=c", "…"])), "a\\\\;b=c;\\…");
        assert_eq!(text(&Value::List(vec![Value::bytes(&b"a"[..]), Value::Cut])), "a;…");
        assert_eq!(text(&Value::Pairs(vec![(Value::bytes(&b"a;b=1"[..]), Value::I64(2))])), "a\\;b=1=2");
    }
}
