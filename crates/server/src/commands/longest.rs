//! `LCS`: the longest text that two texts have in common, with gaps.

use super::{Answer, Call, Command, Refusal, SYNTAX, Use, integer, is};

pub(super) const COMMANDS: &[Command] =
    &[Command { name: "LCS", arity: -3, keys: (1, 2, 1), uses: Use::Reads, run: lcs }];

/// The product of both lengths: each pair of places takes four bytes, and a step.
const PAIRS_MAX: usize = 8 << 20;

#[derive(Default)]
struct Options {
    shows_length: bool,
    shows_places: bool,
    match_min: usize,
    with_lengths: bool,
}

fn options(mut words: &[&[u8]]) -> Result<Options, Refusal> {
    let mut options = Options::default();
    loop {
        words = match words {
            [] => break,
            [word, rest @ ..] if is(word, "LEN") => {
                options.shows_length = true;
                rest
            }
            [word, rest @ ..] if is(word, "IDX") => {
                options.shows_places = true;
                rest
            }
            [word, rest @ ..] if is(word, "WITHMATCHLEN") => {
                options.with_lengths = true;
                rest
            }
            [word, least, rest @ ..] if is(word, "MINMATCHLEN") => {
                options.match_min = usize::try_from(integer(least)?).unwrap_or(0);
                rest
            }
            _ => return Err(SYNTAX.into()),
        };
    }
    match options.shows_length && options.shows_places {
        true => Err("ERR If you want both the length and indexes, please just use IDX.".into()),
        false => Ok(options),
    }
}

/// Of each two begins how long the longest common text is, row by row.
struct Lengths {
    width: usize,
    all: Vec<u32>,
}

impl Lengths {
    fn of(one: &[u8], other: &[u8]) -> Self {
        let width = other.len() + 1;
        let mut all = vec![0u32; (one.len() + 1) * width];
        for (row, byte) in one.iter().enumerate() {
            for (column, found) in other.iter().enumerate() {
                let at = (row + 1) * width + column + 1;
                all[at] =
                    if byte == found { all[at - width - 1] + 1 } else { all[at - width].max(all[at - 1]) };
            }
        }
        Self { width, all }
    }

    fn at(&self, row: usize, column: usize) -> u32 {
        self.all[row * self.width + column]
    }
}

/// Where both have the same bytes: the first in each, and how many.
type Match = (usize, usize, usize);

/// The common text, and where it stands, from the end on.
fn found(lengths: &Lengths, one: &[u8], other: &[u8]) -> (Vec<u8>, Vec<Match>) {
    let (mut row, mut column) = (one.len(), other.len());
    let (mut text, mut matches) = (Vec::new(), Vec::<Match>::new());
    while row > 0 && column > 0 {
        if one[row - 1] == other[column - 1] {
            (row, column) = (row - 1, column - 1);
            text.push(one[row]);
            match matches.last_mut() {
                Some(last) if (last.0, last.1) == (row + 1, column + 1) => *last = (row, column, last.2 + 1),
                _ => matches.push((row, column, 1)),
            }
        } else if lengths.at(row - 1, column) > lengths.at(row, column - 1) {
            row -= 1;
        } else {
            column -= 1;
        }
    }
    text.reverse();
    (text, matches)
}

fn lcs(call: &mut Call<'_, '_>) -> Answer {
    let options = options(&call.arguments[3..])?;
    let mut texts = Vec::with_capacity(2);
    for key in &call.arguments[1..3] {
        let text = call.string(key).map_err(|_| "ERR The specified keys must contain string values")?;
        texts.push(text.unwrap_or_default().to_vec());
    }
    let (one, other) = (&texts[0], &texts[1]);
    let pairs = (one.len() + 1).saturating_mul(other.len() + 1);
    if pairs > PAIRS_MAX {
        return Err(format!("ERR the lengths of both texts multiplied are at most {PAIRS_MAX}").into());
    }
    call.turn.worked(pairs);
    let lengths = Lengths::of(one, other);
    let length = i64::from(lengths.at(one.len(), other.len()));
    if options.shows_length {
        call.reply.int(length);
        return Ok(());
    }
    let (text, mut matches) = found(&lengths, one, other);
    if !options.shows_places {
        call.reply.bulk(&text);
        return Ok(());
    }
    matches.retain(|found| found.2 >= options.match_min);
    call.reply.map(2);
    call.reply.bulk(b"matches");
    call.reply.array(matches.len());
    for (row, column, count) in matches {
        call.reply.array(if options.with_lengths { 3 } else { 2 });
        for first in [row, column] {
            call.reply.array(2);
            call.reply.int(first as i64);
            call.reply.int((first + count - 1) as i64);
        }
        if options.with_lengths {
            call.reply.int(count as i64);
        }
    }
    call.reply.bulk(b"len");
    call.reply.int(length);
    Ok(())
}
