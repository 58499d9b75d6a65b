//! A load as it went: how far it had come at many moments.

use serde_json::Value;

/// What threads are there for, as the bench calls it.
pub(super) const KINDS: [&str; 7] = ["writers", "sort", "flush", "compact", "house", "io", "others"];

/// How far a load had come at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moment {
    pub(super) records: f64,
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
    /// By [`KINDS`]; nothing where it was not told.
    pub(super) thread_seconds: [f64; KINDS.len()],
    pub(super) write_bytes: f64,
    pub(super) read_bytes: f64,
}

/// Moments one behind the other, the first of them the beginning.
#[derive(Clone, Debug)]
pub(super) struct Curve(Vec<Moment>);

impl Curve {
    /// Of a phase's line; `None` where it has none.
    pub(super) fn of(line: &Value) -> Option<Self> {
        let moment = |point: &Value| {
            let number = |name: &str| point[name].as_f64();
            Some(Moment {
                records: number("operations")?,
                seconds: number("seconds")?,
                cpu_seconds: number("cpu_seconds")?,
                thread_seconds: KINDS
                    .map(|kind| point["cpu_seconds_by_thread"][kind].as_f64().unwrap_or(0.0)),
                write_bytes: number("write_bytes").unwrap_or(0.0),
                read_bytes: number("read_bytes").unwrap_or(0.0),
            })
        };
        let points: Vec<Moment> = line["curve"].as_array()?.iter().filter_map(moment).collect();
        let last = points.last()?;
        (last.records > 0.0 && last.seconds > 0.0)
            .then(|| Self(std::iter::once(Moment::default()).chain(points).collect()))
    }

    pub(super) fn end(&self) -> Moment {
        self.0.last().copied().unwrap_or_default()
    }

    /// When there were so many records, between two moments as if all went evenly; `None` beyond the end.
    fn at(&self, records: f64) -> Option<Moment> {
        let (one, other) = self
            .0
            .iter()
            .zip(self.0.get(1..)?)
            .find(|(one, other)| one.records <= records && records <= other.records)?;
        let apart = other.records - one.records;
        let part = if apart > 0.0 { (records - one.records) / apart } else { 1.0 };
        Some(Moment { records, ..one.combine(other, |one, other| one + (other - one) * part) })
    }

    /// What happened while it grew from so many records to so many.
    pub(super) fn between(&self, from: f64, to: f64) -> Option<Moment> {
        Some(self.at(to)?.combine(&self.at(from)?, |to, from| to - from))
    }

    /// The last half of so many records.
    pub(super) fn last_half(&self, records: f64) -> Option<Moment> {
        self.between(records / 2.0, records)
    }

    /// Records a second over the size reached, each over a part of all records.
    pub(super) fn by_size(&self, parts: u32) -> Vec<(f64, f64)> {
        let step = self.end().records / f64::from(parts);
        let rate = |part: u32| {
            let to = (step * f64::from(part + 1)).min(self.end().records);
            Some((to, self.between(step * f64::from(part), to)?.rate()))
        };
        (0..parts).filter_map(rate).filter(|(_, rate)| rate.is_finite()).collect()
    }

    /// Records a second over time, each over a part of the whole at least.
    pub(super) fn by_time(&self, parts: u32) -> Vec<(f64, f64)> {
        let step = self.end().seconds / f64::from(parts);
        let mut before = Moment::default();
        let mut rates = Vec::new();
        for moment in &self.0 {
            let seconds = moment.seconds - before.seconds;
            if seconds >= step {
                rates.push((moment.seconds, (moment.records - before.records) / seconds));
                before = *moment;
            }
        }
        rates
    }
}

impl Moment {
    fn combine(&self, other: &Self, with: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            records: with(self.records, other.records),
            seconds: with(self.seconds, other.seconds),
            cpu_seconds: with(self.cpu_seconds, other.cpu_seconds),
            thread_seconds: std::array::from_fn(|kind| {
                with(self.thread_seconds[kind], other.thread_seconds[kind])
            }),
            write_bytes: with(self.write_bytes, other.write_bytes),
            read_bytes: with(self.read_bytes, other.read_bytes),
        }
    }

    /// Records a second.
    pub(super) fn rate(&self) -> f64 {
        self.records / self.seconds
    }

    /// Processor time a record.
    pub(super) fn cpu_nanoseconds(&self) -> f64 {
        self.cpu_seconds * 1e9 / self.records
    }

    /// The same by [`KINDS`]; `None` where it was not told.
    pub(super) fn thread_nanoseconds(&self) -> Option<[f64; KINDS.len()]> {
        let is_told = self.thread_seconds.iter().sum::<f64>() > 0.0;
        is_told.then(|| self.thread_seconds.map(|seconds| seconds * 1e9 / self.records))
    }

    /// Bytes that come from the device for each record.
    pub(super) fn record_read_bytes(&self) -> f64 {
        self.read_bytes / self.records
    }

    /// Bytes that reach the device for each record.
    pub(super) fn record_write_bytes(&self) -> f64 {
        self.write_bytes / self.records
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn curve() -> Curve {
        // 100 a second for ten seconds, and then 50.
        let point = |seconds: f64, operations: u64| {
            json!({ "seconds": seconds, "operations": operations, "cpu_seconds": 2.0 * seconds,
                    "write_bytes": operations * 10 })
        };
        Curve::of(&json!({ "curve": [point(5.0, 500), point(10.0, 1000), point(30.0, 2000)] })).unwrap()
    }

    #[test]
    fn a_half_is_of_the_records_and_not_of_the_time() {
        let half = curve().last_half(2000.0).unwrap();
        assert_eq!((half.rate(), half.record_write_bytes()), (50.0, 10.0));
        assert_eq!(half.cpu_nanoseconds(), 40.0 * 1e9 / 1000.0);
        // At the size that another engine has reached.
        assert_eq!(curve().last_half(500.0).unwrap().rate(), 100.0);
        assert_eq!(curve().last_half(2001.0), None);
    }

    #[test]
    fn rates_over_sizes_and_over_time() {
        assert_eq!(curve().by_size(4), [(500.0, 100.0), (1000.0, 100.0), (1500.0, 50.0), (2000.0, 50.0)]);
        assert_eq!(curve().by_time(3), [(10.0, 100.0), (30.0, 50.0)]);
        assert!(Curve::of(&json!({ "curve": [] })).is_none());
    }
}
