//! [`Windowed`]: rows with the beginning of each one's window beside them, as a column of the key.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use forebay::{Error, Period, Result};
use forebay_env::sync::Arc;

/// The column of windows' beginnings.
pub const WINDOW: &str = "window";
const DAY_MILLISECONDS: i64 = 24 * 3600 * 1000;

/// What becomes of rows from before all that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// The first of them is an error.
    Refuse,
    /// They are left out.
    Drop,
}

/// See the module.
pub struct Windowed {
    /// The columns of rows, and behind them that of windows.
    pub schema: SchemaRef,
    /// The column of times, by its place.
    pub times: usize,
    /// How long windows are.
    pub period: Period,
    /// Times from before are late.
    pub kept_from: u64,
    /// What becomes of such rows.
    pub late: Late,
}

/// The place of the column of times among columns that are to be added.
fn place_of(rows: &Schema, time: &str) -> Result<usize> {
    let names = || rows.fields().iter().map(|field| &field.name()[..]).collect::<Vec<_>>().join(", ");
    if rows.fields().iter().any(|field| field.name() == WINDOW) {
        let told =
            format!("the rows have a column `{WINDOW}`, as the beginnings of windows are called; rename it");
        return Err(Error::invalid(told));
    }
    rows.index_of(time)
        .map_err(|_| Error::invalid(format!("there is no column `{time}`; there are: {}", names())))
}

/// Of what type beginnings of windows are, for times of this one.
fn window_type(times: &Field) -> Result<DataType> {
    Ok(match times.data_type() {
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
        DataType::Date32 | DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::Int64 | DataType::UInt64 => DataType::Int64,
        kind => {
            return Err(Error::invalid(format!(
                "column `{}` is {kind}; times are timestamps, dates, or Int64 or UInt64 in milliseconds since 1970",
                times.name()
            )));
        }
    })
}

/// The columns of rows, and behind them that of windows' beginnings; and the place of that of times. Windows are of a
/// type that is known, or follows from that of times.
pub fn windowed_schema(rows: &SchemaRef, time: &str, known: Option<DataType>) -> Result<(SchemaRef, usize)> {
    let place = place_of(rows, time)?;
    let kind = window_type(rows.field(place))?;
    let window = Arc::new(Field::new(WINDOW, known.unwrap_or(kind), true));
    let fields = rows.fields().iter().cloned().chain([window]).collect::<Vec<_>>();
    Ok((Arc::new(Schema::new(fields)), place))
}

/// Times as milliseconds since 1970; those without a zone as if they were in UTC.
fn milliseconds(times: &ArrayRef) -> Result<Int64Array> {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    Ok(match times.data_type() {
        DataType::Timestamp(Second, _) => {
            times.as_primitive::<TimestampSecondType>().unary(|time| time.saturating_mul(1000))
        }
        DataType::Timestamp(Millisecond, _) => {
            times.as_primitive::<TimestampMillisecondType>().unary(|time| time)
        }
        DataType::Timestamp(Microsecond, _) => {
            times.as_primitive::<TimestampMicrosecondType>().unary(|time| time.div_euclid(1000))
        }
        DataType::Timestamp(Nanosecond, _) => {
            times.as_primitive::<TimestampNanosecondType>().unary(|time| time.div_euclid(1_000_000))
        }
        DataType::Date32 => times.as_primitive::<Date32Type>().unary(|day| i64::from(day) * DAY_MILLISECONDS),
        DataType::Date64 => times.as_primitive::<Date64Type>().unary(|time| time),
        DataType::Int64 => times.as_primitive::<Int64Type>().clone(),
        DataType::UInt64 => {
            times.as_primitive::<UInt64Type>().unary(|time| i64::try_from(time).unwrap_or(i64::MAX))
        }
        kind => return Err(Error::invalid(format!("{kind} is no type of times"))),
    })
}

impl Windowed {
    /// The rows with their windows, and how many were left out.
    pub fn rows(&self, rows: &RecordBatch) -> Result<(RecordBatch, usize)> {
        let times = milliseconds(rows.column(self.times))?;
        let (mut starts, mut kept) = (Vec::with_capacity(times.len()), Vec::with_capacity(times.len()));
        let mut window = 0..0;
        for (at, time) in times.iter().enumerate() {
            let time = self.sound(at, time)?;
            let is_kept = time >= self.kept_from;
            if !is_kept && self.late == Late::Refuse {
                return Err(self.refused(
                    at,
                    &format!(
                        "a time from before {}, where what is kept begins: leave \
                     such rows out (in Python late=\"drop\" does)",
                        self.kept_from
                    ),
                ));
            }
            if !window.contains(&time) {
                window = self.period.around(time);
            }
            starts.push(i64::try_from(window.start).unwrap_or(i64::MAX));
            kept.push(is_kept);
        }
        let starts: ArrayRef = match self.schema.field(self.schema.fields().len() - 1).data_type() {
            DataType::Timestamp(_, zone) => {
                Arc::new(TimestampMillisecondArray::from(starts).with_timezone_opt(zone.clone()))
            }
            _ => Arc::new(Int64Array::from(starts)),
        };
        let columns = rows.columns().iter().cloned().chain([starts]).collect();
        let made = RecordBatch::try_new(SchemaRef::clone(&self.schema), columns).map_err(failed)?;
        let dropped = kept.iter().filter(|is_kept| !**is_kept).count();
        if dropped == 0 {
            return Ok((made, 0));
        }
        let made = arrow_select::filter::filter_record_batch(&made, &BooleanArray::from(kept));
        Ok((made.map_err(failed)?, dropped))
    }

    /// The time of a row, which must have one.
    fn sound(&self, at: usize, time: Option<i64>) -> Result<u64> {
        let time = time.ok_or_else(|| self.refused(at, "no time"))?;
        u64::try_from(time).map_err(|_| self.refused(at, "a time from before 1970"))
    }

    fn refused(&self, at: usize, what: &str) -> Error {
        let column = self.schema.field(self.times);
        Error::invalid(format!("column `{}`: row {} has {what}", column.name(), at + 1))
    }
}

fn failed(error: ArrowError) -> Error {
    Error::bug(format!("rows in windows make no record batch: {error}"))
}
