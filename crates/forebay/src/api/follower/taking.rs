//! Taking in a change stream, message by message.
//!
//! **Invariant:** commits and marks stand in a round, rounds behind what says whose stream it is, and the first round of
//! a stream tells its tables. All else is damage.

use std::io::Read;

use forebay_base::{Error, Result, planted};
use forebay_store::manifest::Lineage;

use super::tables::Told;
use super::{Follower, Step};
use crate::api::applied::{Applied, StreamEnd, Until};
use crate::changes::{BatchOf, Ending, Greeting, Meeting, Message, Messages, Round};

/// The stream that is being taken in.
struct Taking {
    meeting: Meeting,
    /// Whether its source is a follower itself.
    source_follows: bool,
    /// What tables there are by the end of the round; none before the first one.
    told: Option<Told>,
    /// The time by which the round was committed.
    at_milliseconds: u64,
    /// Whether that is later than what is wanted.
    is_late: bool,
}

impl Taking {
    fn hear<R: Read>(&mut self, round: Round, until: Until, messages: &Messages<R>) -> Result<()> {
        self.at_milliseconds = round.at_milliseconds;
        self.is_late = matches!(until, Until::Time(time) if round.at_milliseconds > time);
        match (&mut self.told, round.tables) {
            (told, Some(tables)) => *told = Some(Told::new(tables, round.next_table)),
            (Some(told), None) => told.go_on(round.next_table),
            (None, None) => return Err(messages.damaged("the first round of a stream tells no tables")),
        }
        Ok(())
    }
}

impl Follower {
    pub(super) fn take_in<R: Read>(&mut self, messages: &mut Messages<R>, until: Until) -> Result<Applied> {
        let position = self.position();
        if let Until::Sequence(wanted) = until
            && position > wanted
        {
            return Err(Error::invalid(format!(
                "the follower has records up to {position} already, and nothing goes back to {wanted}; begin with an \
                 older copy"
            )));
        }
        let mut applied = Applied { position, batches: 0, at_milliseconds: None, end: StreamEnd::Finished };
        let mut taking = None;
        while let Some(message) = messages.next()? {
            if let Some(end) = self.take(message, &mut taking, &mut applied, until, messages)? {
                return Ok(Applied { end, ..applied });
            }
        }
        debug_assert_eq!(applied.position, self.position(), "its last number is its position");
        if taking.is_some_and(|taking| taking.is_late) {
            applied.end = StreamEnd::Reached;
        } else if !messages.is_whole() {
            applied.end = StreamEnd::CutOff;
        }
        Ok(applied)
    }

    /// Takes one message. Returns why the stream ends here, if it does.
    fn take<R: Read>(
        &mut self,
        message: Message,
        taking: &mut Option<Taking>,
        applied: &mut Applied,
        until: Until,
        messages: &Messages<R>,
    ) -> Result<Option<StreamEnd>> {
        match (message, taking.as_mut()) {
            (Message::Greeting(greeting), _) => {
                let meeting = self.meet(&greeting, applied.position)?;
                let source_follows = greeting.lineage.is_copy;
                let (told, at_milliseconds, is_late) = (None, 0, false);
                *taking = Some(Taking { meeting, source_follows, told, at_milliseconds, is_late });
            }
            (Message::End(Ending::Gone { since, oldest, rolled_back }), Some(_)) => {
                return Err(Error::ChangesGone { since, oldest, rolled_back });
            }
            (Message::End(ending), Some(_)) => {
                *taking = None;
                let is_behind = matches!(ending, Ending::Behind(_));
                applied.end = if is_behind { StreamEnd::Behind } else { StreamEnd::Finished };
            }
            (Message::Round(round), Some(taking)) => {
                taking.hear(round, until, messages)?;
                if !taking.is_late {
                    applied.at_milliseconds = Some(taking.at_milliseconds);
                }
            }
            (Message::Batch(batch), Some(taking)) => {
                return self.take_batch(batch, taking, applied, until, messages);
            }
            (Message::Mark(told), Some(taking)) => {
                return self.take_mark(told, taking, applied.position, until, messages);
            }
            (Message::Request(_), _) | (_, None) => {
                return Err(messages.damaged("the stream does not say first whose it is"));
            }
        }
        Ok(None)
    }

    fn take_batch<R: Read>(
        &mut self,
        batch: BatchOf,
        taking: &mut Taking,
        applied: &mut Applied,
        until: Until,
        messages: &Messages<R>,
    ) -> Result<Option<StreamEnd>> {
        let told = taking.told.as_mut().ok_or_else(|| outside(messages))?;
        let last = batch.sequence + u64::from(batch.records) - 1;
        if taking.is_late {
            return Ok(Some(self.end_late(batch.sequence <= applied.position, applied.position, until)));
        }
        if matches!(until, Until::Sequence(wanted) if last > wanted) {
            return Ok(Some(StreamEnd::Reached));
        }
        refuse_other_way(taking.meeting, last)?;
        if last > applied.position || planted::is("batch-applied-twice") {
            if taking.source_follows && self.has_heard_more(told) {
                return Ok(Some(StreamEnd::Behind));
            }
            let position = applied.position;
            // A copy of a moment has the tables of that; of another line's round it is not known whether it goes so far.
            let drops_early = until == Until::End && taking.meeting == Meeting::Onward;
            applied.position =
                self.step(Step::Commit, |own| own.write(batch, position, told, drops_early, messages))?;
            applied.batches += 1;
        }
        self.note_heard(last, taking.at_milliseconds);
        Ok(None)
    }

    fn take_mark<R: Read>(
        &mut self,
        mark: u64,
        taking: &mut Taking,
        position: u64,
        until: Until,
        messages: &Messages<R>,
    ) -> Result<Option<StreamEnd>> {
        let told = taking.told.as_mut().ok_or_else(|| outside(messages))?;
        if taking.is_late {
            return Ok(Some(self.end_late(mark < position, position, until)));
        }
        if mark > position {
            return Err(
                messages.damaged(format!("commits up to {mark} were told, and {position} is the last"))
            );
        }
        // A round of before says nothing of now, nor does a stream of before.
        if mark == position && !matches!(taking.meeting, Meeting::Earlier(end) if position >= end) {
            if !told.is_taken() {
                self.step(Step::EndOfRound, |own| own.end_round(told, messages))?;
            }
            self.beside.iter().for_each(|beside| beside.caught_up(mark, taking.at_milliseconds));
        }
        self.note_heard(mark, taking.at_milliseconds);
        Ok((until == Until::Sequence(position)).then_some(StreamEnd::Reached))
    }

    /// A round of a later time than is wanted: where it tells of records that are here, and nothing tells that those were
    /// committed earlier, what is here is newer than that.
    fn end_late(&self, tells_of_these: bool, position: u64, until: Until) -> StreamEnd {
        let (heard, at_milliseconds) = self.heard;
        let is_in_time = heard >= position && matches!(until, Until::Time(time) if at_milliseconds <= time);
        match tells_of_these && !is_in_time {
            true => StreamEnd::Passed,
            false => StreamEnd::Reached,
        }
    }

    fn note_heard(&mut self, number: u64, at_milliseconds: u64) {
        let (heard, by) = self.heard;
        if number > heard || number == heard && at_milliseconds < by {
            self.heard = (number, at_milliseconds);
        }
    }

    /// Goes on only where all that is here is a beginning of what the source has.
    fn meet(&self, greeting: &Greeting, position: u64) -> Result<Meeting> {
        let versions = &self.db.engine().versions;
        let mine = versions.lineage();
        let is_blank = versions.state().tables.values().next().is_none();
        let met = greeting.meet(mine.as_ref().unwrap_or(&Lineage::default()), position, is_blank)?;
        let lineage = Lineage { is_copy: true, ..greeting.lineage.clone() };
        if met == Meeting::Onward && mine.as_ref() != Some(&lineage) {
            versions.set_lineage(lineage)?;
        }
        Ok(met)
    }

    /// Writes a batch behind this record. Returns the number of its last.
    fn write<R: Read>(
        &mut self,
        batch: BatchOf,
        position: u64,
        told: &mut Told,
        drops_early: bool,
        messages: &Messages<R>,
    ) -> Result<u64> {
        let BatchOf { sequence, records, payload } = batch;
        if sequence != position + 1 && !planted::is("batch-applied-twice") {
            return Err(messages.damaged(format!(
                "a commit begins with record {sequence}, and the follower has those up to {position}"
            )));
        }
        self.check(told, messages)?;
        let malformed = || messages.damaged(format!("the commit of record {sequence} is malformed"));
        let read = self.db.engine().writer.read_followed(payload, records);
        let (mut payload, newest, mut is_known) = read.ok_or_else(malformed)?;
        if newest >= self.known_below {
            self.make_up_to(newest, told, messages)?;
            (payload, is_known) = self.db.engine().writer.note_followed(&payload);
        }
        if !is_known && drops_early && self.drop_untold(told)? {
            (payload, _) = self.db.engine().writer.note_followed(&payload);
        }
        self.order_for(&payload, told, messages)?;
        let written = self.db.engine().writer.write_followed(payload)?;
        debug_assert!(
            planted::is("batch-applied-twice")
                || written.is_none_or(|last| last == position + u64::from(records)),
            "a record has the number that it has at the source"
        );
        written.ok_or_else(malformed)
    }
}

/// An earlier stream is the follower's history up to where that has gone on without it.
fn refuse_other_way(meeting: Meeting, last: u64) -> Result<()> {
    match meeting {
        Meeting::Earlier(end) if last > end => Err(Error::invalid(format!(
            "the stream goes on after record {end}, and the follower's history has gone another way there, or has entries \
             that were ingested: it is the stream of a source that was left"
        ))),
        _ => Ok(()),
    }
}

fn outside<R: Read>(messages: &Messages<R>) -> Error {
    messages.damaged("the stream does not say first what tables there are")
}

#[cfg(test)]
mod tests {
    use forebay_env::Env;

    use super::*;
    use crate::Options;

    /// Streams that nobody writes, with all sums as they should be: none of them takes anything away.
    #[test]
    fn what_does_not_stand_in_its_place_is_damage() {
        let greeting = || {
            Message::Greeting(Greeting {
                lineage: Lineage { is_whole: true, ..Lineage::default() },
                since: 0,
            })
        };
        let batch = || Message::Batch(BatchOf { sequence: 1, records: 1, payload: vec![7, 0, 1, 1] });
        let round = |tables| Message::Round(Round { at_milliseconds: 1, next_table: 9, tables });
        for messages in [
            vec![Message::Mark(0)],
            vec![Message::End(Ending::Finished)],
            vec![round(Some(Vec::new()))],
            vec![greeting(), Message::Mark(0)],
            vec![greeting(), batch()],
            vec![greeting(), round(None)],
            vec![greeting(), round(Some(Vec::new())), Message::Mark(1)],
            vec![greeting(), round(Some(Vec::new())), greeting(), batch()],
        ] {
            let mut bytes = b"FBCHANGE".to_vec();
            for message in &messages {
                let place = bytes.len() as u64;
                message.encode(place, &mut bytes);
            }
            let env = Env::memory(1);
            let mut follower =
                Follower::open("/copy", Options::default().memory_limit(1 << 20).env(env)).unwrap();
            let error = follower.apply(&bytes[..]).unwrap_err();
            assert!(error.is_corruption(), "{messages:?}: {error}");
            assert_eq!(follower.position(), 0);
        }
    }
}
