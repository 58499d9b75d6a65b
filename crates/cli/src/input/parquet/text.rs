//! What the values of Parquet columns are as text: numbers in decimal, dates and times as ISO 8601 has them.

use std::fmt::Display;
use std::io::Write as _;

use forebay_aggregate::Value;
use forebay_aggregate::arrow::calendar::{Day, Point, Time, Zone};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as PhysicalType};
use parquet::schema::types::ColumnDescriptor;

/// The day of the Julian calendar that 1970 begins with.
const JULIAN_1970: i64 = 2_440_588;
/// The most digits of decimals of 16 bytes.
const DECIMAL_DIGITS: u32 = 39;

/// What the numbers or bytes of a column stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// What they are.
    Plain,
    /// Integers without a sign.
    Unsigned,
    /// Days since 1970.
    Date,
    /// This many parts of a second since midnight.
    Time(i64),
    /// This many parts of a second since 1970; in UTC, or wherever it was written.
    Timestamp(i64, Zone),
    /// Integers with this many digits after the point.
    Decimal(u32),
    Uuid,
    /// Floating-point numbers of 16 bits.
    Half,
}

impl Form {
    /// That of a column.
    pub(super) fn of(column: &ColumnDescriptor) -> Result<Self, String> {
        let scale = || u32::try_from(column.type_scale()).unwrap_or(0);
        let parts = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => 1000,
            TimeUnit::MICROS => 1_000_000,
            TimeUnit::NANOS => 1_000_000_000,
        };
        let zone = |is_utc: bool| if is_utc { Zone::Utc } else { Zone::Local };
        let form = match column.logical_type_ref() {
            Some(LogicalType::Date) => Self::Date,
            Some(LogicalType::Time(time)) => Self::Time(parts(&time.unit)),
            Some(LogicalType::Timestamp(time)) => {
                Self::Timestamp(parts(&time.unit), zone(time.is_adjusted_to_u_t_c))
            }
            Some(LogicalType::Integer(integer)) if !integer.is_signed => Self::Unsigned,
            Some(LogicalType::Decimal(decimal)) => Self::Decimal(u32::try_from(decimal.scale).unwrap_or(0)),
            Some(LogicalType::Uuid) => Self::Uuid,
            Some(LogicalType::Float16) => Self::Half,
            Some(_) => Self::Plain,
            None => match column.converted_type() {
                ConvertedType::DATE => Self::Date,
                ConvertedType::TIME_MILLIS => Self::Time(1000),
                ConvertedType::TIME_MICROS => Self::Time(1_000_000),
                ConvertedType::TIMESTAMP_MILLIS => Self::Timestamp(1000, Zone::Utc),
                ConvertedType::TIMESTAMP_MICROS => Self::Timestamp(1_000_000, Zone::Utc),
                ConvertedType::UINT_8 | ConvertedType::UINT_16 => Self::Unsigned,
                ConvertedType::UINT_32 | ConvertedType::UINT_64 => Self::Unsigned,
                ConvertedType::DECIMAL => Self::Decimal(scale()),
                ConvertedType::INTERVAL => return Err(format!("column {:?} has intervals", column.name())),
                _ => Self::Plain,
            },
        };
        let is_long =
            column.type_length() > 16 && column.physical_type() == PhysicalType::FIXED_LEN_BYTE_ARRAY;
        match form {
            Self::Decimal(_) if is_long => {
                Err(format!("column {:?} has decimals of more than 16 bytes", column.name()))
            }
            Self::Decimal(scale) if scale > DECIMAL_DIGITS => {
                Err(format!("column {:?} has decimals with {scale} digits after the point", column.name()))
            }
            form => Ok(form),
        }
    }

    /// Whether values are floating-point numbers of at most 32 bits, whose texts are shorter than those of 64.
    pub(super) fn is_single(self, column: &ColumnDescriptor) -> bool {
        self == Self::Half || column.physical_type() == PhysicalType::FLOAT
    }

    pub(super) fn int32(self, value: i32, out: &mut Vec<u8>) {
        match self {
            Self::Unsigned => display(value.cast_unsigned(), out),
            form => form.int64(value.into(), out),
        }
    }

    pub(super) fn int64(self, value: i64, out: &mut Vec<u8>) {
        match self {
            Self::Plain | Self::Uuid | Self::Half => display(value, out),
            Self::Unsigned => display(value.cast_unsigned(), out),
            Self::Date => display(Day(value), out),
            Self::Time(parts) => display(Time { value, parts }, out),
            Self::Timestamp(parts, zone) => display(Point { value, parts, zone }, out),
            Self::Decimal(scale) => decimal(value.into(), scale, out),
        }
    }

    /// Fails where the value is none of the column's.
    pub(super) fn bytes(self, value: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::Decimal(scale) if (1..=16).contains(&value.len()) => {
                let sign: i128 = if value[0] >= 0x80 { -1 } else { 0 };
                decimal(value.iter().fold(sign, |all, byte| all << 8 | i128::from(*byte)), scale, out);
            }
            Self::Decimal(_) => {
                return Err(format!("a decimal of {} bytes; only 1 to 16 can be read", value.len()));
            }
            Self::Half => match value {
                [low, high] => single(half::f16::from_le_bytes([*low, *high]).to_f32(), out),
                _ => out.extend_from_slice(value),
            },
            Self::Uuid => {
                for (at, byte) in value.iter().enumerate() {
                    let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
                    display(format_args!("{dash}{byte:02x}"), out);
                }
            }
            _ => out.extend_from_slice(value),
        }
        Ok(())
    }
}

/// Writing to memory cannot fail.
pub(super) fn display(value: impl Display, out: &mut Vec<u8>) {
    let _ = write!(out, "{value}");
}

pub(super) fn truth(value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// As the output writes it, so that what is read back is the same; minus zero is zero.
pub(super) fn float(value: f64, out: &mut Vec<u8>) {
    Value::F64(value + 0.0).write_text(out);
}

/// The same of a number of 32 bits, or of what fits it: the shortest text that tells it from others of 32 bits.
pub(super) fn single(value: f32, out: &mut Vec<u8>) {
    Value::F32(value + 0.0).write_text(out);
}

/// The time stamps of old writers: nanoseconds of a day, and the day.
pub(super) fn int96(words: &[u32], out: &mut Vec<u8>) {
    let word = |at: usize| i64::from(words.get(at).copied().unwrap_or(0));
    let time = Time { value: word(1) << 32 | word(0), parts: 1_000_000_000 };
    display(format_args!("{}T{time}", Day(word(2) - JULIAN_1970)), out);
}

fn decimal(value: i128, scale: u32, out: &mut Vec<u8>) {
    let digits = scale as usize;
    let mut text = format!("{:0width$}", value.unsigned_abs(), width = digits + 1);
    if digits > 0 {
        text.insert(text.len() - digits, '.');
    }
    display(format_args!("{}{text}", if value < 0 { "-" } else { "" }), out);
}

/// The texts of a column's values, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Cells {
    text: Vec<u8>,
    /// Where each ends, and whether it is a value.
    ends: Vec<(usize, bool)>,
}

impl Cells {
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.text);
        self.ends.push((self.text.len(), true));
    }

    pub(super) fn push_null(&mut self) {
        self.ends.push((self.text.len(), false));
    }

    /// The text of all, where each begins or ends, and which are values.
    pub(super) fn all(&self) -> (&[u8], impl Iterator<Item = (usize, bool)>) {
        (&self.text, self.ends.iter().copied())
    }

    pub(super) fn get(&self, at: usize) -> Option<&[u8]> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before].0);
        let (end, is_value) = self.ends[at];
        is_value.then(|| &self.text[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn dates_and_times_are_those_of_the_calendar() {
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (19_782, "2024-02-29"),
            (-25_508, "1900-03-01"),
            (-25_509, "1900-02-28"),
            (-719_162, "0001-01-01"),
            (-719_528, "0000-01-01"),
            (-719_529, "-000001-12-31"),
            (-800_002, "-000221-09-02"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "+010000-01-01"),
        ] {
            assert_eq!(shown(|out| Form::Date.int32(days, out)), text);
        }
        let stamp = |value, parts, zone| shown(|out| Form::Timestamp(parts, zone).int64(value, out));
        assert_eq!(stamp(1_709_210_096_789, 1000, Zone::Utc), "2024-02-29T12:34:56.789Z");
        assert_eq!(stamp(-1, 1_000_000, Zone::Local), "1969-12-31T23:59:59.999999");
        assert_eq!(shown(|out| Form::Time(1000).int32(45_296_007, out)), "12:34:56.007");
        assert_eq!(shown(|out| int96(&[1, 0, 2_440_588], out)), "1970-01-01T00:00:00.000000001");
        // Nothing that a file may hold makes it panic.
        for value in [i64::MIN, i64::MAX] {
            for form in [Form::Timestamp(1000, Zone::Utc), Form::Time(1_000_000_000), Form::Decimal(30)] {
                assert!(!shown(|out| form.int64(value, out)).is_empty());
            }
        }
    }

    #[test]
    fn numbers_and_bytes_are_what_they_stand_for() {
        assert_eq!(shown(|out| Form::Unsigned.int32(-1, out)), "4294967295");
        assert_eq!(shown(|out| Form::Half.bytes(&[0x00, 0xc1], out).unwrap()), "-2.5");
        assert_eq!(shown(|out| float(-0.0, out)), "0");
        assert_eq!(shown(|out| single(0.1, out)), "0.1");
        assert_eq!(shown(|out| Form::Unsigned.int64(-1, out)), "18446744073709551615");
        assert_eq!(shown(|out| Form::Decimal(2).int32(-5, out)), "-0.05");
        assert_eq!(shown(|out| Form::Decimal(0).int64(70, out)), "70");
        assert_eq!(shown(|out| Form::Decimal(2).bytes(&[0xff, 0x38], out).unwrap()), "-2.00");
        assert_eq!(shown(|out| Form::Decimal(1).bytes(&[0x01, 0x00], out).unwrap()), "25.6");
        let uuid: Vec<u8> = (0..16).collect();
        assert_eq!(
            shown(|out| Form::Uuid.bytes(&uuid, out).unwrap()),
            "00010203-0405-0607-0809-0a0b0c0d0e0f"
        );
    }
}
