//! FASTA and FASTQ: the sequences of a file, in pieces as they are read, so that none has to fit anything.
//!
//! A file that begins with `>` is FASTA: lines that begin so end a sequence, all others continue it. One
//! that begins with `@` is FASTQ: four lines a record, of which the second is the sequence, and the fourth
//! is as long.

use std::io::{ErrorKind, Read};
use std::mem;

use memchr::memchr;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::input::Position;
use crate::input::window::Tail;

/// How much is read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// What a file holds, in order.
pub(super) enum Piece<'a> {
    /// What follows is another sequence of FASTA.
    Next,
    /// What follows is a record of FASTQ, which may turn out to be malformed.
    Record,
    /// A part of a sequence, perhaps with ends of lines.
    Bases(&'a [u8]),
    /// The record is whole, so far.
    Whole,
    /// A record is malformed, and why.
    Malformed(&'a Records, &'static str),
    /// Everything up to here was shown; from here reading can go on at another time.
    Mark(&'a Records),
}

/// Shows what `input` holds, which begins at a mark, if there is one.
pub(super) fn for_each(
    mut input: impl Read,
    name: &str,
    mark: Option<Records>,
    tail: Tail,
    mut show: impl FnMut(Piece<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut file = mark;
    let mut before = Before::default();
    loop {
        let read = match input.read(&mut chunk) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::work(format!("cannot read {name}: {error}"))),
        };
        if read == 0 {
            let Some(mut file) = file else { return Ok(()) };
            file.end(tail, &mut show)?;
            return show(Piece::Mark(&file));
        }
        let mut bytes = &chunk[..read];
        let records = match &mut file {
            Some(file) => file,
            None => {
                bytes = before.pass(bytes);
                let Some(first) = bytes.first() else { continue };
                file.insert(Records::begin_with(*first, before.bytes, name)?)
            }
        };
        records.take(bytes, &mut show)?;
        show(Piece::Mark(records))?;
    }
}

/// What stands before the first record: a byte order mark and blank lines, which are passed over.
#[derive(Default)]
pub(super) struct Before {
    pub(super) bytes: u64,
}

impl Before {
    /// What is left of more bytes.
    pub(super) fn pass<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
        let is_passed =
            |place: u64, byte: u8| MARK.get(place as usize) == Some(&byte) || matches!(byte, b'\n' | b'\r');
        let places = self.bytes..;
        let passed = places.zip(bytes).take_while(|(place, byte)| is_passed(*place, **byte)).count();
        self.bytes += passed as u64;
        &bytes[passed..]
    }
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Line {
    /// Of FASTA: the name of a sequence.
    Name,
    /// Of FASTA: a part of one.
    Part,
    /// Of FASTQ: where a record begins, or a blank one before it.
    Between,
    Title,
    Sequence,
    Plus,
    Quality,
    /// Of FASTQ: what is passed over after a malformed record.
    Lost,
}

/// Where in a file reading is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Records {
    line: Line,
    /// Whether the line begins with the next byte.
    begins: bool,
    offset: u64,
    record: Position,
    bases: u64,
    qualities: u64,
    /// Whether the last byte of the line is a return, which is none of it where a newline follows.
    #[serde(default)]
    returns: bool,
}

impl Records {
    /// The records of an input that begins with this byte, at an offset.
    pub(super) fn begin_with(first: u8, offset: u64, name: &str) -> Result<Self, Failure> {
        let line = match first {
            b'>' => Line::Name,
            b'@' => Line::Between,
            _ => {
                return Err(Failure::work(format!(
                    "{name}: it begins with neither `>`, as FASTA does, nor `@`, as FASTQ does"
                )));
            }
        };
        let record = Position::default();
        Ok(Self { line, begins: true, offset, record, bases: 0, qualities: 0, returns: false })
    }

    /// What was shown.
    pub(super) fn position(&self) -> Position {
        Position { number: self.record.number, offset: self.offset }
    }

    /// The record of FASTQ that was shown last.
    pub(super) fn record(&self) -> Position {
        self.record
    }

    /// Where that record begins.
    pub(super) fn before_record(&self) -> Self {
        let Position { number, offset } = self.record;
        let record = Position { number: number.saturating_sub(1), offset };
        Self { line: Line::Between, begins: true, offset, record, bases: 0, qualities: 0, returns: false }
    }

    /// Takes the next bytes, and shows what they hold.
    pub(super) fn take<E>(
        &mut self,
        chunk: &[u8],
        show: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = chunk;
        while let Some(first) = rest.first() {
            if self.begins {
                self.begin(*first, show)?;
            }
            let end = memchr(b'\n', rest);
            let part = &rest[..end.unwrap_or(rest.len())];
            self.begins = end.is_some();
            self.returns = part.last().map_or(self.returns, |last| *last == b'\r');
            // It may have come with the bytes before these.
            let returned = u64::from(self.begins && mem::take(&mut self.returns));
            match self.line {
                Line::Part => show(Piece::Bases(part))?,
                Line::Sequence => {
                    self.bases = self.bases + part.len() as u64 - returned;
                    show(Piece::Bases(part))?;
                }
                Line::Quality => self.qualities = self.qualities + part.len() as u64 - returned,
                Line::Name | Line::Between | Line::Title | Line::Plus | Line::Lost => {}
            }
            let used = part.len() + usize::from(end.is_some());
            self.offset += used as u64;
            rest = &rest[used..];
            if self.begins {
                self.finish_line(show)?;
            }
        }
        Ok(())
    }

    /// A line begins with this byte.
    fn begin<E>(&mut self, first: u8, show: &mut impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        match (self.line, first) {
            (Line::Name | Line::Part, b'>') => {
                self.line = Line::Name;
                show(Piece::Next)
            }
            (Line::Name | Line::Part, _) => {
                self.line = Line::Part;
                Ok(())
            }
            (Line::Between | Line::Lost, b'@') => self.begin_record(show),
            (Line::Between, first) if !matches!(first, b'\n' | b'\r') => {
                self.record = self.next_record();
                self.lose("a record of FASTQ begins with `@`", show)
            }
            (Line::Plus, first) if first != b'+' => {
                self.lose("the third line of a record of FASTQ begins with `+`", show)?;
                // The line that is missing may be the third one.
                if first == b'@' { self.begin_record(show) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn next_record(&self) -> Position {
        Position { number: self.record.number + 1, offset: self.offset }
    }

    fn begin_record<E>(&mut self, show: &mut impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        self.record = self.next_record();
        self.line = Line::Title;
        (self.bases, self.qualities) = (0, 0);
        show(Piece::Record)
    }

    fn finish_line<E>(&mut self, show: &mut impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        self.line = match self.line {
            Line::Title => Line::Sequence,
            Line::Sequence => Line::Plus,
            Line::Plus => Line::Quality,
            Line::Quality if self.bases != self.qualities => {
                return self.lose("it has not as many qualities as bases", show);
            }
            Line::Quality => {
                show(Piece::Whole)?;
                Line::Between
            }
            line => line,
        };
        Ok(())
    }

    fn lose<E>(
        &mut self,
        reason: &'static str,
        show: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.line = Line::Lost;
        show(Piece::Malformed(self, reason))
    }

    /// Whether a record of FASTQ has begun and may go on.
    pub(super) fn is_in_record(&self) -> bool {
        matches!(self.line, Line::Title | Line::Sequence | Line::Plus | Line::Quality)
    }

    /// Whether no record would be cut off if the file ended here.
    pub(super) fn is_whole(&self) -> bool {
        match self.line {
            Line::Name | Line::Part | Line::Between | Line::Lost => true,
            Line::Quality => self.bases + u64::from(self.returns) == self.qualities,
            Line::Title | Line::Sequence | Line::Plus => false,
        }
    }

    /// The file ends here, for now or for good.
    pub(super) fn end<E>(
        &mut self,
        tail: Tail,
        show: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match (self.is_whole(), tail) {
            (true, _) => show(Piece::Whole),
            (false, Tail::Taken) => self.lose("the input ends in the middle of a record", show),
            (false, Tail::Left) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that gives few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let length = self.1.min(into.len());
            self.0.read(&mut into[..length])
        }
    }

    /// The sequences, and `number@offset reason` of what is malformed.
    fn sequences(text: &str) -> Vec<String> {
        let through = |at_once| {
            let mut seen = Vec::new();
            let shown = for_each(Trickle(text.as_bytes(), at_once), "test", None, Tail::Taken, |piece| {
                match piece {
                    Piece::Next | Piece::Record => seen.push(String::new()),
                    Piece::Bases(bases) => {
                        seen.last_mut().unwrap().push_str(std::str::from_utf8(bases).unwrap().trim_end());
                    }
                    Piece::Malformed(records, reason) => {
                        let at = records.record();
                        seen.push(format!("{}@{} {reason}", at.number, at.offset));
                    }
                    Piece::Whole | Piece::Mark(_) => {}
                }
                Ok(())
            });
            match shown {
                Ok(()) => seen,
                Err(failure) => vec![failure.to_string()],
            }
        };
        let all = through(usize::MAX);
        for at_once in [1, 2, 3, 5] {
            assert_eq!(through(at_once), all, "{at_once} bytes at a time");
        }
        all
    }

    #[test]
    fn sequences_of_fasta_go_over_lines() {
        assert_eq!(sequences(">a b\nAC\nGT\n\n>c\r\nTT\r\nA"), ["ACGT", "TTA"]);
        assert_eq!(sequences(">only"), [""]);
        assert_eq!(sequences(""), Vec::<String>::new());
    }

    #[test]
    fn a_byte_order_mark_and_blank_lines_come_before_the_first_record() {
        assert_eq!(sequences("\u{feff}>a\nAC\n"), ["AC"]);
        assert_eq!(sequences("\r\n\n@a\nAC\n+\nII\n"), ["AC"]);
        assert_eq!(
            sequences("\u{feff}\n@a\nAC\n+\nI\n"),
            ["AC", "1@4 it has not as many qualities as bases"]
        );
        assert_eq!(sequences("\n\n"), Vec::<String>::new());
    }

    #[test]
    fn records_of_fastq_have_four_lines() {
        assert_eq!(sequences("@a\nACGT\n+a\n@>+I\n@b\r\nTT\r\n+\r\nII\r\n\n"), ["ACGT", "TT"]);
        assert_eq!(sequences("@a\n\n+\n\n@b\nAC\n+\nII"), ["", "AC"]);
    }

    #[test]
    fn what_is_malformed_is_told_and_passed_over() {
        assert_eq!(
            sequences("@a\nAC\n+\nI\n@b\nA\n@c\nG\n+\nI\nx\n@d\nT\n+\nI\n@e\nC"),
            [
                "AC",
                "1@0 it has not as many qualities as bases",
                "A",
                "2@10 the third line of a record of FASTQ begins with `+`",
                "G",
                "4@24 a record of FASTQ begins with `@`",
                "T",
                "C",
                "6@35 the input ends in the middle of a record",
            ]
        );
        assert!(sequences("ACGT\n")[0].contains("neither `>`"));
    }
}
