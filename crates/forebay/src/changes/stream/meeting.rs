//! Whether a follower can go on with a stream, and how far.
//!
//! **Invariant:** a commit is applied only where all that the follower has is a beginning of what the commit followed.

use forebay_base::{Error, Result};
use forebay_store::manifest::Lineage;

use super::message::Greeting;

/// What a follower makes of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meeting {
    /// The stream goes on where the follower is: it is of this lineage from here on.
    Onward,
    /// The stream was written before the follower's line began, as one of an archive may be: it is the follower's history
    /// up to this number, where it is of that at all.
    Earlier(u64),
}

impl Greeting {
    /// What a follower makes of it that is of this lineage, and has records up to this number. It is blank where it has no
    /// table.
    pub(crate) fn meet(&self, mine: &Lineage, position: u64, is_blank: bool) -> Result<Meeting> {
        let met = match mine.lines.is_empty() {
            true => self.meet_new(position, is_blank),
            false => self.meet_lines(mine, position),
        };
        let met = met.map_err(Error::Invalid)?;
        if position < self.since {
            return Err(Error::invalid(format!(
                "the stream begins after record {}, and the follower has those up to {position} only; begin the stream \
                 after that (in a shell `--since {position}`), or make the follower of a newer backup",
                self.since
            )));
        }
        Ok(met)
    }

    /// The same of one that is of no line yet.
    fn meet_new(&self, position: u64, is_blank: bool) -> Result<Meeting, String> {
        if position > 0 || !is_blank {
            return Err("the copy was made before its database kept changes for followers, so nothing tells what came in \
                        between; make the follower of a checkpoint or a backup that was taken since"
                .into());
        }
        match self.lineage.is_whole {
            true => Ok(Meeting::Onward),
            false => Err(
                "the source's changes do not reach back to its beginning: it was written, or ingested into, \
                          before it kept them; make the follower of a checkpoint or a backup"
                    .into(),
            ),
        }
    }

    /// The same of one that has lines. Those that begin behind its last record say nothing of what it has.
    fn meet_lines(&self, mine: &Lineage, position: u64) -> Result<Meeting, String> {
        let (lines, own) = (&self.lineage.lines, &mine.lines);
        let earlier = lines.last().and_then(|last| own.iter().position(|line| line.id == last.id));
        if let Some(next) = earlier.and_then(|at| own.get(at + 1)) {
            return Ok(Meeting::Earlier(next.from));
        }
        let mut left = None;
        for (at, line) in own.iter().enumerate().rev() {
            // At a border the last record lies in both lines.
            let is_begun = at == 0 || line.from <= position;
            let is_left = own.get(at + 1).is_some_and(|next| position > next.from);
            let theirs = lines.iter().position(|other| other.id == line.id);
            let Some(theirs) = theirs.filter(|_| is_begun && !is_left) else { continue };
            match lines.get(theirs + 1) {
                Some(next) if position > next.from => left = Some(next.from),
                _ => return Ok(Meeting::Onward),
            }
        }
        let oldest = own.first().map_or(0, |line| line.from);
        let is_older = lines.last().is_some_and(|line| line.from <= oldest && line.from < position);
        let (theirs, own) = (self.lineage.database, mine.database);
        if left.is_none() && theirs == own && is_older && self.since < position {
            // At an ingest, and after many crashes, a follower forgets lines that have led to it. Whether these are some of
            // those shows where the stream goes on beyond it, if it does.
            return Ok(Meeting::Earlier(position));
        }
        Err(match left {
            Some(from) => format!(
                "the follower has records up to {position}, and the source has gone another way after {from}: the follower \
                 has seen what the source lost in a crash, or never had; make it anew from a checkpoint or a backup"
            ),
            None if theirs == own => format!(
                "the source has no line in common with the follower, which has its records up to {position}: entries \
                 were ingested into the source since, or it is a copy that went another way; make the follower anew \
                 from a checkpoint or a backup of it"
            ),
            None => format!(
                "the stream is of database {theirs:016x}, and the follower is a copy of {own:016x}; follow that, or \
                 begin with a new directory"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use forebay_store::manifest::Line;

    use super::*;

    fn lineage(database: u64, lines: &[(u64, u64)]) -> Lineage {
        let lines = lines.iter().map(|&(id, from)| Line { id, from }).collect();
        Lineage { database, is_copy: true, is_whole: true, lines }
    }

    #[test]
    fn who_has_a_beginning_of_it_may_go_on_and_nobody_else() {
        let source = lineage(1, &[(10, 0), (11, 50), (12, 70)]);
        let meet = |mine: &Lineage, position, is_blank, since| {
            let greeting = Greeting { lineage: source.clone(), since };
            greeting.meet(mine, position, is_blank).map_err(|error| error.to_string())
        };
        let none = Lineage::default();
        assert_eq!(meet(&none, 0, true, 0), Ok(Meeting::Onward));
        assert!(meet(&none, 0, false, 0).unwrap_err().contains("before its database kept changes"));
        assert!(meet(&none, 7, true, 0).unwrap_err().contains("before its database kept changes"));
        // In a line that goes on it may be anywhere; in one that was left, before that.
        let places = [(10, 50, true), (10, 51, false), (11, 70, true), (11, 71, false), (12, 99, true)];
        for (id, position, is_met) in places {
            let mine = lineage(1, &[(9, 0), (id, 0)]);
            let met = meet(&mine, position, false, 0);
            assert_eq!(met.is_ok(), is_met, "{id} {position}: {met:?}");
        }
        // What was written before is history of a follower that has gone on.
        let ahead = lineage(1, &[(10, 0), (11, 50), (12, 70), (13, 90)]);
        assert_eq!(meet(&ahead, 95, false, 0), Ok(Meeting::Earlier(90)));
        let mine = lineage(1, &[(12, 70)]);
        assert!(meet(&mine, 80, false, 81).unwrap_err().contains("--since 80"));
        assert!(meet(&lineage(2, &[(13, 0)]), 1, false, 0).unwrap_err().contains("0000000000000002"));
        assert!(meet(&lineage(1, &[(13, 0)]), 1, false, 0).unwrap_err().contains("ingested"));
    }

    /// An ingest makes a history forget its lines, and so does a crash of which there were many: what a stream tells of
    /// before is passed over. One of a source that has ingested since is refused, however early it begins.
    #[test]
    fn older_lines_than_any_that_is_known_may_have_been_forgotten() {
        let meet = |mine: &[(u64, u64)], position, theirs: &[(u64, u64)], since| {
            let greeting = Greeting { lineage: lineage(1, theirs), since };
            greeting.meet(&lineage(1, mine), position, false).map_err(|error| error.to_string())
        };
        let mine = [(20, 500), (21, 550)];
        assert_eq!(meet(&mine, 600, &[(10, 0), (11, 400)], 0), Ok(Meeting::Earlier(600)));
        // Two ingests with nothing between.
        assert_eq!(meet(&mine, 600, &[(19, 500)], 500), Ok(Meeting::Earlier(600)));
        let refused = [
            meet(&mine, 600, &[(10, 0), (11, 400)], 600),
            meet(&mine, 600, &[(30, 600)], 550),
            meet(&mine, 600, &[(30, 580)], 550),
            meet(&mine[..1], 500, &[(30, 500)], 400),
        ];
        for met in refused {
            assert!(met.as_ref().is_err_and(|error| error.contains("no line in common")), "{met:?}");
        }
        let other = Greeting { lineage: lineage(2, &[(10, 0)]), since: 0 };
        assert!(other.meet(&lineage(1, &mine), 600, false).is_err());
    }

    /// Whether all came in by the log is said, and not to be read from where the first line begins: an ingest takes no
    /// number, and the oldest lines are forgotten.
    #[test]
    fn one_that_is_new_asks_whether_the_log_has_all() {
        for (from, is_whole) in [(0, true), (0, false), (5, true), (5, false)] {
            let lineage = Lineage { is_whole, ..lineage(1, &[(10, from)]) };
            let met = Greeting { lineage, since: 0 }.meet(&Lineage::default(), 0, true);
            assert_eq!(met.is_ok(), is_whole, "{from}: {met:?}");
            assert!(is_whole || met.unwrap_err().to_string().contains("do not reach back"));
        }
    }

    /// The source crashed and began line 11, of which the follower has heard and nothing more; another follower that has
    /// not heard of it is promoted, and begins line 12.
    #[test]
    fn a_line_that_was_heard_of_and_begins_later_keeps_nobody_from_another() {
        let heard = lineage(1, &[(10, 0), (11, 200)]);
        let promoted = Greeting { lineage: lineage(1, &[(10, 0), (12, 90)]), since: 0 };
        let meet = |position| promoted.meet(&heard, position, false).map_err(|error| error.to_string());
        assert_eq!(meet(80), Ok(Meeting::Onward));
        assert_eq!(meet(90), Ok(Meeting::Onward));
        assert!(meet(91).unwrap_err().contains("another way after 90"));
        assert!(meet(201).unwrap_err().contains("no line in common"));
        // At the border it has nothing of the line that begins there.
        let late = Greeting { lineage: lineage(1, &[(10, 0), (12, 200)]), since: 0 };
        assert_eq!(late.meet(&heard, 200, false).unwrap(), Meeting::Onward);
        // The old line, which the source has left.
        let old = Greeting { lineage: lineage(1, &[(10, 0)]), since: 0 };
        assert_eq!(old.meet(&heard, 80, false).unwrap(), Meeting::Earlier(200));
    }
}
