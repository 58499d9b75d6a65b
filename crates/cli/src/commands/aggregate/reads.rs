//! The bases of sequences on their way to k-mers. Those of a record of FASTQ are held until the record is whole, so
//! that nothing of a malformed one is counted; those of one that is very long go on before that.

use super::kmers::{Roller, Word};
use super::sequences::Records;

/// The most bases that are held.
const HELD_BYTES_MAX: usize = 256 << 10;

/// See the module.
pub(super) struct Reads<W> {
    pub(super) roller: Roller<W>,
    held: Vec<u8>,
    way: Way,
}

/// How bases go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As they come: of FASTA, and between records.
    Through,
    /// When their record is whole.
    Held,
    /// Some of the record have gone on already.
    Split,
}

impl<W: Word> Reads<W> {
    /// Goes on with a roller where it was marked.
    pub(super) fn new(roller: Roller<W>, mark: Option<&Records>) -> Self {
        let is_within = mark.is_some_and(Records::is_in_record);
        Self { roller, held: Vec::new(), way: if is_within { Way::Split } else { Way::Through } }
    }

    /// Another sequence begins, which may go on as it comes.
    pub(super) fn begin(&mut self) {
        self.roller.clear();
        self.way = Way::Through;
    }

    /// Another record begins, which is held.
    pub(super) fn begin_held(&mut self) {
        self.begin();
        self.way = Way::Held;
    }

    /// Takes the next bases, and shows the k-mers of those that go on.
    #[inline]
    pub(super) fn take<E>(
        &mut self,
        bases: &[u8],
        mut show: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.way == Way::Held {
            if self.held.len() + bases.len() <= HELD_BYTES_MAX {
                self.held.extend_from_slice(bases);
                return Ok(());
            }
            self.release(&mut show)?;
            self.way = Way::Split;
        }
        self.roller.feed(bases, show)
    }

    /// Shows the k-mers of what is held: the record is whole.
    pub(super) fn release<E>(&mut self, show: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.way = Way::Through;
        let fed = self.roller.feed(&self.held, show);
        self.held.clear();
        fed
    }

    /// Forgets what is held; tells whether nothing of the record has gone on.
    pub(super) fn forget(&mut self) -> bool {
        self.held.clear();
        std::mem::replace(&mut self.way, Way::Through) != Way::Split
    }

    /// Whether all bases of the record are held.
    pub(super) fn is_held(&self) -> bool {
        self.way == Way::Held
    }
}
