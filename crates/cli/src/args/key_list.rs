//! The keys a command is given: on its command line, or, with `-`, on standard input, one a line.

use std::ffi::OsString;
use std::io::{self, StdinLock};

use crate::failure::Failure;
use crate::input::lines::Lines;
use crate::input::window::Window;
use crate::input::{Source, TroubleKind};
use crate::keys::Notation;

/// How many keys are handled at once.
const KEYS_AT_ONCE: usize = 1000;

/// Hands out the keys in groups, in their order.
///
/// From standard input a group ends where waiting would begin, so that a program that writes a key and
/// waits for its answer gets one.
pub(crate) fn in_groups(
    given: &[OsString],
    notation: Notation,
    mut handle: impl FnMut(&[Vec<u8>]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if given == ["-"] {
        return from_lines(&mut Lines::new(Window::new(io::stdin().lock())), notation, handle);
    }
    let keys = given
        .iter()
        .map(|text| notation.parse(text.as_encoded_bytes()).map(|key| key.into_owned()))
        .collect::<Result<Vec<_>, String>>()
        .map_err(Failure::Usage)?;
    keys.chunks(KEYS_AT_ONCE).try_for_each(&mut handle)
}

fn from_lines(
    lines: &mut Lines<StdinLock<'static>>,
    notation: Notation,
    mut handle: impl FnMut(&[Vec<u8>]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut keys: Vec<Vec<u8>> = vec![Vec::new(); KEYS_AT_ONCE];
    let mut used = 0;
    loop {
        let at = lines.position();
        let outcome = match lines.next() {
            Ok(Some((line, _))) => notation.parse(line).map(Some),
            Ok(None) => Ok(None),
            Err(trouble) => match *trouble {
                TroubleKind::Bad(reason) => Err(reason),
                TroubleKind::Read(error) => {
                    return Err(Failure::work(format!("cannot read standard input: {error}")));
                }
            },
        };
        match outcome {
            Ok(Some(key)) => {
                keys[used].clear();
                keys[used].extend_from_slice(&key);
                used += 1;
            }
            Ok(None) => return if used > 0 { handle(&keys[..used]) } else { Ok(()) },
            Err(reason) => {
                return Err(Failure::work(format!("standard input: key {}: {reason}", at.number + 1)));
            }
        }
        if used == KEYS_AT_ONCE || !lines.has_line() {
            handle(&keys[..used])?;
            used = 0;
        }
    }
}
