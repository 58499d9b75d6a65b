//! Holding the cube and the windows, or what a snapshot has of them, against what they must hold.

use std::ops::{Bound, Range, RangeBounds};

use forebay::{Error, Result, Snapshot};
use forebay_aggregate::{Aggregate, Groupings};

use super::{Groups, Handles, KEEP, LENGTHS, floors, masked};
use crate::check::{borrowed, compare};
use crate::{Contents, Query};

/// What answers: the handles as they are now, or a snapshot of them.
pub(crate) struct GroupsView<'a> {
    pub(crate) handles: &'a Handles,
    pub(crate) snapshot: Option<&'a Snapshot>,
}

/// Asks either as it is now, or as the snapshot has it.
macro_rules! ask {
    ($view:expr, $handle:ident, $call:ident($($argument:expr),*)) => {
        match $view.snapshot {
            None => $view.handles.$handle.$call($($argument),*),
            Some(snapshot) => $view.handles.$handle.at(snapshot).$call($($argument),*),
        }
    };
}

impl GroupsView<'_> {
    /// Asks both for everything.
    pub(crate) fn check_all(&self, groups: &Groups) -> Result<()> {
        self.check(groups, None, &Query::All)?;
        let now = groups.expired.1;
        let mut ranges = vec![(0, u64::MAX)];
        for (tier, length) in LENGTHS.into_iter().enumerate() {
            let first = floors(now)[tier];
            let windows = (0..u64::from(KEEP[tier]) + 2).map(|window| first + window * length);
            ranges.extend(windows.map(|start| (start, start + length)));
        }
        ranges.into_iter().try_for_each(|(start, end)| self.check(groups, Some(&(start..end)), &Query::All))
    }

    /// Asks the cube a query, or the windows over a range of time, and compares.
    pub(crate) fn check(&self, groups: &Groups, times: Option<&Range<u64>>, query: &Query) -> Result<()> {
        match times {
            None => self.check_cube(groups, query),
            Some(times) => self.check_windows(groups, times, query),
        }
    }

    fn check_cube(&self, groups: &Groups, query: &Query) -> Result<()> {
        let groupings: &Groupings = self.handles.cube.groupings();
        let masked = |grouping, key: &Vec<u8>| masked(groupings, grouping, key);
        for grouping in groupings.iter() {
            let wanted = groups.grouped(groupings, grouping);
            let what = format!("grouping {} by {query:?}", grouping.bits());
            let scan = match query {
                Query::Get(key) => {
                    let found = ask!(self, cube, get(grouping, key))?;
                    assert_eq!(found.as_ref(), wanted.get(&masked(grouping, key)), "{what}");
                    continue;
                }
                Query::Range(low, high) => ask!(self, cube, range(grouping, (borrowed(low), borrowed(high)))),
                Query::Prefix(prefix) => ask!(self, cube, prefix(grouping, prefix)),
                _ => ask!(self, cube, iter(grouping)),
            };
            let (low, high, prefix) = match query {
                Query::Range(low, high) => {
                    let masked = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|key| masked(grouping, key));
                    (masked(low), masked(high), Vec::new())
                }
                Query::Prefix(prefix) => (Bound::Unbounded, Bound::Unbounded, masked(grouping, prefix)),
                _ => (Bound::Unbounded, Bound::Unbounded, Vec::new()),
            };
            let wanted = within(&wanted, &low, &high, &prefix);
            let (mut front, mut back, mut scan) = (Vec::new(), Vec::new(), scan?);
            // From both ends in turns, and each end now and then alone.
            for turn in wanted.len() % 3.. {
                let (entry, side) = match turn % 3 {
                    0 => (scan.next_back(), &mut back),
                    _ => (scan.next(), &mut front),
                };
                match entry {
                    Some(entry) => side.push(entry?),
                    None => break,
                }
            }
            front.extend(back.into_iter().rev());
            compare(&what, &front, &wanted);
        }
        let found = ask!(self, cube, metadata())?;
        assert_eq!(found, groups.metadata[0], "metadata of the cube");
        Ok(())
    }

    fn check_windows(&self, groups: &Groups, times: &Range<u64>, query: &Query) -> Result<()> {
        let kept_from = ask!(self, windows, kept_from())?;
        let (surely, at_most) = (floors(groups.expired.0)[2], floors(groups.expired.1)[2]);
        assert!((surely..=at_most).contains(&kept_from), "{kept_from} is not from {surely} to {at_most}");
        let wanted = groups.over(kept_from, times);
        let what = format!("windows of {times:?} by {query:?}");
        if let Query::Get(key) = query {
            match ask!(self, windows, get(times.clone(), key)) {
                Err(error) if may_be_refused(groups, times, &error) => {}
                found => assert_eq!(found?.as_ref(), wanted.get(key), "{what}"),
            }
            return Ok(());
        }
        let scan = match query {
            Query::Range(low, high) => {
                ask!(self, windows, range(times.clone(), (borrowed(low), borrowed(high))))
            }
            Query::Prefix(prefix) => ask!(self, windows, prefix(times.clone(), prefix)),
            _ => ask!(self, windows, iter(times.clone())),
        };
        let found = match scan {
            Err(error) if may_be_refused(groups, times, &error) => return Ok(()),
            scan => scan?.collect::<Result<Vec<_>>>()?,
        };
        let wanted = match query {
            Query::Range(low, high) => within(&wanted, low, high, b""),
            Query::Prefix(prefix) => within(&wanted, &Bound::Unbounded, &Bound::Unbounded, prefix),
            _ => wanted.into_iter().collect(),
        };
        compare(&what, &found, &wanted);
        let found = ask!(self, windows, metadata())?;
        assert_eq!(found, groups.metadata[1], "metadata of the windows");
        self.check_listed(groups, times)
    }

    /// Windows are listed that have values, and each holds its own.
    fn check_listed(&self, groups: &Groups, times: &Range<u64>) -> Result<()> {
        let listed = ask!(self, windows, windows(times.clone()))?;
        let floor = floors(groups.expired.1)[0];
        for start in groups.starts(floor, times) {
            assert!(listed.iter().any(|window| window.start == start), "no {start} in {listed:?}");
        }
        for window in listed {
            let mut scan = ask!(self, windows, iter(window.clone()))?;
            let mut found = Vec::new();
            while let Some(entry) = scan.next_state() {
                let (key, state) = entry?;
                found.push((key, self.handles.windows.function().finish(&state)?));
            }
            let wanted: Vec<_> = groups.over(window.start, &window).into_iter().collect();
            compare(&format!("the window {window:?}"), &found, &wanted);
        }
        Ok(())
    }

    /// Whether both hold just this; no panic where they do not.
    pub(crate) fn holds(&self, groups: &Groups) -> Result<bool> {
        let Handles { cube, windows } = self.handles;
        let found = (cube.metadata()?, windows.metadata()?);
        if (found.0.as_ref(), found.1.as_ref()) != (groups.metadata[0].as_ref(), groups.metadata[1].as_ref())
        {
            return Ok(false);
        }
        let kept_from = windows.kept_from()?;
        let (surely, at_most) = (floors(groups.expired.0)[2], floors(groups.expired.1)[2]);
        let over_all = windows.iter(..)?.collect::<Result<Contents>>()?;
        if !(surely..=at_most).contains(&kept_from) || over_all != groups.over(kept_from, &(0..u64::MAX)) {
            return Ok(false);
        }
        for grouping in cube.groupings().iter() {
            let found = cube.iter(grouping)?.collect::<Result<Contents>>()?;
            if found != groups.grouped(cube.groupings(), grouping) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether a range of time may be no whole number of the windows that are kept.
fn may_be_refused(groups: &Groups, times: &Range<u64>, error: &Error) -> bool {
    let kept = floors(groups.expired.1);
    let is_kept = |tier: usize| times.start >= kept[tier] && times.start.is_multiple_of(LENGTHS[tier]);
    let is_coarse = |time: u64| time == u64::MAX || time.is_multiple_of(LENGTHS[2]);
    let is_one = |tier: usize| is_kept(tier) && times.start.saturating_add(LENGTHS[tier]) == times.end;
    let is_answered = is_coarse(times.start) && is_coarse(times.end)
        || times.end == u64::MAX && (times.start == 0 || (0..3).any(is_kept))
        || (0..3).any(is_one);
    matches!(error, Error::Invalid(_)) && !is_answered
}

fn within(
    contents: &Contents,
    low: &Bound<Vec<u8>>,
    high: &Bound<Vec<u8>>,
    prefix: &[u8],
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let bounds = (borrowed(low), borrowed(high));
    let is_wanted = |key: &[u8]| RangeBounds::<&[u8]>::contains(&bounds, &key) && key.starts_with(prefix);
    let wanted = contents.iter().filter(|(key, _)| is_wanted(key));
    wanted.map(|(key, state)| (key.clone(), state.clone())).collect()
}
