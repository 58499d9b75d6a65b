//! What more cores would allow, calculated from what a record takes on those that there are.
//!
//! 1. A thread that is alone of its kind allows as many records as its processor time of one goes into a second.
//! 2. Compactors have the cores that all others leave. At the rate where that is just enough all cores are busy, so it is
//!    that of all cores by the processor time of all threads.
//! 3. The device allows what it moves in a second, by the bytes that a record reads and writes.
//! 4. The least of these is the plan's rate.

use super::curve::{KINDS, Moment};

/// That plans are made for.
pub(super) const CORES: [u32; 4] = [2, 4, 8, 16];
/// Up to here a limit is looked for.
const CORES_MAX: u32 = 1024;

/// What bounds a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    OneWriter,
    /// As many as there are cores.
    Writers,
    Sorter,
    Flusher,
    Compactors,
    Device,
}

pub(super) const RESOURCES: [Resource; 6] = [
    Resource::OneWriter,
    Resource::Writers,
    Resource::Sorter,
    Resource::Flusher,
    Resource::Compactors,
    Resource::Device,
];

/// How many write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    Alone,
    Beside,
}

/// What a record takes, and what there is besides cores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// By [`KINDS`].
    thread_nanoseconds: [f64; KINDS.len()],
    /// Read and written.
    record_device_bytes: f64,
    /// A second; as many as one likes where that was not measured.
    device_bytes: f64,
}

impl Resource {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OneWriter => "one writer",
            Self::Writers => "writers",
            Self::Sorter => "sorter",
            Self::Flusher => "flusher",
            Self::Compactors => "compactors",
            Self::Device => "device",
        }
    }
}

impl Plan {
    /// From a part of a load; `None` where it does not tell threads apart.
    pub(super) fn of(part: &Moment, device_bytes: Option<f64>) -> Option<Self> {
        Some(Self {
            thread_nanoseconds: part.thread_nanoseconds()?,
            record_device_bytes: part.record_read_bytes() + part.record_write_bytes(),
            device_bytes: device_bytes.unwrap_or(f64::INFINITY),
        })
    }

    /// The same where a record moves so many bytes.
    pub(super) fn moving(self, record_device_bytes: f64) -> Self {
        Self { record_device_bytes, ..self }
    }

    /// Records a second that this would allow alone.
    pub(super) fn rate(&self, resource: Resource, cores: u32) -> f64 {
        let [writer, sorter, flusher, ..] = self.thread_nanoseconds;
        let all: f64 = self.thread_nanoseconds.iter().sum();
        match resource {
            Resource::OneWriter => 1e9 / writer,
            Resource::Writers => f64::from(cores) * 1e9 / writer,
            Resource::Sorter => 1e9 / sorter,
            Resource::Flusher => 1e9 / flusher,
            Resource::Compactors => f64::from(cores) * 1e9 / all,
            Resource::Device => self.device_bytes / self.record_device_bytes,
        }
    }

    /// The least of all that count, and whose that is.
    pub(super) fn least(&self, writing: Writing, cores: u32) -> (f64, Resource) {
        let counts = |resource: &Resource| match writing {
            Writing::Alone => *resource != Resource::Writers,
            Writing::Beside => *resource != Resource::OneWriter,
        };
        let rates = RESOURCES.into_iter().filter(counts);
        rates
            .map(|resource| (self.rate(resource, cores), resource))
            .min_by(|one, other| one.0.total_cmp(&other.0))
            .unwrap_or((f64::INFINITY, Resource::Compactors))
    }

    /// From how many cores on this allows less than all cores do.
    pub(super) fn limits_from(&self, resource: Resource) -> Option<u32> {
        (1..=CORES_MAX).find(|cores| self.rate(resource, *cores) < self.rate(Resource::Compactors, *cores))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        // A microsecond a record in all, of which compactors take the half.
        let thread_nanoseconds = [200.0, 100.0, 150.0, 500.0, 10.0, 40.0, 0.0];
        Plan { thread_nanoseconds, record_device_bytes: 100.0, device_bytes: 9e8 }
    }

    #[test]
    fn the_least_bounds_a_plan() {
        let plan = plan();
        let least = |writing| CORES.map(|cores| plan.least(writing, cores));
        let (writer, compactors) = (Resource::OneWriter, Resource::Compactors);
        assert_eq!(
            least(Writing::Alone),
            [(2e6, compactors), (4e6, compactors), (5e6, writer), (5e6, writer)]
        );
        let flusher = (1e9 / 150.0, Resource::Flusher);
        assert_eq!(least(Writing::Beside), [(2e6, compactors), (4e6, compactors), flusher, flusher]);
        let moving = plan.moving(300.0);
        assert_eq!(moving.least(Writing::Beside, 16), (3e6, Resource::Device));
    }

    #[test]
    fn compactors_get_what_others_leave() {
        let plan = plan();
        let rate = plan.rate(Resource::Compactors, 4);
        let others = 4.0 - rate * 500e-9;
        assert!((others - rate * 500e-9).abs() < 1e-9, "the others take a half here, too");
    }

    #[test]
    fn a_thread_alone_is_the_limit_once_it_is_a_smaller_part_than_a_core() {
        let from = RESOURCES.map(|resource| plan().limits_from(resource));
        assert_eq!(from, [Some(6), None, Some(11), Some(7), None, Some(10)]);
    }

    #[test]
    fn who_does_not_tell_threads_apart_has_no_plan() {
        let part = Moment { records: 10.0, seconds: 1.0, ..Moment::default() };
        assert!(Plan::of(&part, None).is_none());
        let told = Moment { thread_seconds: [1.0; KINDS.len()], ..part };
        assert_eq!(Plan::of(&told, None).unwrap().least(Writing::Beside, 1).0, 10.0 / KINDS.len() as f64);
    }
}
