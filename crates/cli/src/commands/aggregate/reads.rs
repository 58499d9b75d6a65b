//! The bases of sequences on their way to k-mers. Those of a record of FASTQ are held until the record is whole, so
//! that nothing of a malformed one is counted; those of one that is very long go on before that.

use std::convert::Infallible;
use std::mem;

use super::kmers::{Roller, Word, keep_last};
use super::sequences::{Piece, Records};

/// The most bases that are held.
const HELD_BYTES_MAX: usize = 256 << 10;
/// Bases that may have gone on are kept up to so many, before all but the last few of them are forgotten.
const KEPT_BYTES_MAX: usize = 8 << 10;

/// See the module.
pub(super) struct Reads<W> {
    pub(super) roller: Roller<W>,
    held: Vec<u8>,
    way: Way,
}

/// How bases go on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Way {
    /// As they come: of FASTA, and between records.
    #[default]
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

    /// Goes on where others stopped.
    pub(super) fn behind(k: usize, before: Carried) -> Self {
        let Carried { bases, way } = before;
        let mut reads = Self { roller: Roller::new(k), held: Vec::new(), way };
        match way {
            Way::Held => reads.held = bases,
            Way::Through | Way::Split => {
                // Fewer than a k-mer has.
                let Ok(()) = reads.roller.feed(&bases, |_| Ok::<_, Infallible>(()));
            }
        }
        reads
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
        mut show: impl FnMut(W) -> Result<(), E>,
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
    pub(super) fn release<E>(&mut self, show: impl FnMut(W) -> Result<(), E>) -> Result<(), E> {
        self.way = Way::Through;
        let fed = self.roller.feed(&self.held, show);
        self.held.clear();
        fed
    }

    /// Forgets what is held; tells whether nothing of the record has gone on.
    pub(super) fn forget(&mut self) -> bool {
        self.held.clear();
        mem::replace(&mut self.way, Way::Through) != Way::Split
    }

    /// Whether all bases of the record are held.
    pub(super) fn is_held(&self) -> bool {
        self.way == Way::Held
    }
}

/// What [`Reads`] have at a place, without its k-mers, so that others can go on there.
#[derive(Clone, Default)]
pub(super) struct Carried {
    /// Those that are held, or the last of those that have gone on.
    bases: Vec<u8>,
    way: Way,
}

impl Carried {
    /// Does what they do with the next piece, as far as k-mers of so many bases need it.
    pub(super) fn pass(&mut self, piece: &Piece<'_>, k: usize) {
        match piece {
            Piece::Next | Piece::Whole | Piece::Malformed(..) => self.begin(Way::Through),
            Piece::Record => self.begin(Way::Held),
            Piece::Bases(bases) => {
                let is_held = self.way == Way::Held && self.bases.len() + bases.len() <= HELD_BYTES_MAX;
                self.bases.extend_from_slice(bases);
                if self.way == Way::Held && !is_held {
                    self.way = Way::Split;
                }
                if !is_held && self.bases.len() > KEPT_BYTES_MAX {
                    keep_last(&mut self.bases, k - 1);
                }
            }
            Piece::Mark(_) => {}
        }
    }

    fn begin(&mut self, way: Way) {
        self.bases.clear();
        self.way = way;
    }

    /// A copy for who goes on here.
    pub(super) fn copy(&mut self, k: usize) -> Self {
        if self.way != Way::Held {
            keep_last(&mut self.bases, k - 1);
        }
        self.clone()
    }
}
