//! [`Stretches`]: where in a buffer a table's records lie, so that who looks for them passes over what other tables have.
//!
//! **Invariant:** each record of a batch that was noted lies in a stretch of its table.

/// Stretches that lie closer are one, so that a table has few.
const GAP_BYTES: usize = 4 << 10;

const _: () = assert!(GAP_BYTES > 0);

/// A part of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Where the frame begins that the first record is in.
    frame: u32,
    first: u32,
    last: u32,
}

impl Stretch {
    /// Where the first frame begins.
    pub(super) fn frame(&self) -> usize {
        self.frame as usize
    }

    /// The first record's place.
    pub(super) fn first(&self) -> usize {
        self.first as usize
    }

    /// The last record's place.
    pub(super) fn last(&self) -> usize {
        self.last as usize
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Stretches(Vec<Stretch>);

impl Stretches {
    /// Notes that the frame that begins here has records between these places, both of which are records.
    pub(super) fn note(&mut self, frame: usize, first: usize, last: usize) {
        debug_assert!(frame < first && first <= last && last <= u32::MAX as usize, "places fit a word");
        let noted = Stretch { frame: frame as u32, first: first as u32, last: last as u32 };
        match self.0.last_mut() {
            Some(latest) if first < latest.last() + GAP_BYTES => {
                latest.first = latest.first.min(noted.first);
                latest.last = latest.last.max(noted.last);
            }
            _ => self.0.push(noted),
        }
    }

    /// Those that may have records of frames that begin at `from` or behind and before `to`.
    pub(super) fn within(&self, from: usize, to: usize) -> &[Stretch] {
        debug_assert!(self.0.is_sorted_by_key(Stretch::frame), "oldest first");
        let start = self.0.partition_point(|stretch| stretch.last() < from);
        let end = self.0.partition_point(|stretch| stretch.frame() < to);
        &self.0[start..end.max(start)]
    }

    /// Where the frame begins of the first that begins at `from` or behind.
    pub(super) fn frame_from(&self, from: usize) -> Option<usize> {
        let next = self.0.partition_point(|stretch| stretch.frame() < from);
        self.0.get(next).map(Stretch::frame)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Stretch>() * self.0.capacity()
    }
}
