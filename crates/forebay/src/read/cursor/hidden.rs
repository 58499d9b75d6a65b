//! What is hidden from a cursor: ranges whose deletion is still in write buffers. Between the bounds of all of them the
//! table falls into pieces. In a piece a deletion hides all that is older than itself, or nothing.

use forebay_base::merge::Direction;
use forebay_base::{Bound, Range};

use crate::versions::View;

/// The deleted ranges of a table, each with the number of its buffer, the newest being 0.
#[derive(Default)]
pub(super) struct Hidden(Vec<(usize, Range)>);

impl Hidden {
    pub(super) fn of(view: &View, table: u32) -> Self {
        let buffers = view.buffers().enumerate();
        let range_deletes = buffers.flat_map(|(number, (buffer, limit))| {
            let range_deletes =
                buffer.range_deletes(limit).into_iter().filter(|delete| delete.table == table);
            range_deletes.map(move |delete| (number, delete.range))
        });
        Self(range_deletes.collect())
    }

    /// The piece of `within` that holds the records from `from` on, or just below it; one may be empty.
    pub(super) fn piece(&self, from: Option<&Bound>, within: &Range, direction: Direction) -> Range {
        let range_deletes = self.0.iter().map(|(_, range)| range);
        let bounds =
            || range_deletes.clone().flat_map(|delete| [Some(&delete.low), delete.high.as_ref()]).flatten();
        let mut piece = within.clone();
        match direction {
            Direction::Forward => {
                let at = from.unwrap_or(&within.low);
                let low = bounds().filter(|bound| *bound <= at).max();
                let high = bounds().filter(|bound| *bound > at).min();
                piece.low = low.map_or(piece.low.clone(), |low| low.clone().max(piece.low));
                piece.high = [high.cloned(), piece.high].into_iter().flatten().min();
            }
            Direction::Backward => {
                let at = from.or(within.high.as_ref());
                let low = bounds().filter(|bound| at.is_none_or(|at| *bound < at)).max();
                let high = at.and_then(|at| bounds().filter(|bound| *bound >= at).min());
                piece.low = low.map_or(piece.low.clone(), |low| low.clone().max(piece.low));
                piece.high = [high.cloned(), piece.high].into_iter().flatten().min();
            }
        }
        piece
    }

    /// How many buffers, from the newest on, have something to show in a piece; `None` where lists have, too.
    pub(super) fn buffers_seen(&self, piece: &Range) -> Option<usize> {
        let covers = |delete: &Range| {
            let is_below = |end: &Bound| piece.high.as_ref().is_some_and(|high| high <= end);
            delete.low <= piece.low && delete.high.as_ref().is_none_or(is_below)
        };
        let covering = self.0.iter().filter(|(_, delete)| covers(delete));
        covering.map(|(number, _)| number + 1).min()
    }
}
