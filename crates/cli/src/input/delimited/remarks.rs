//! What is worth a remark of the first row: a header that nobody has told of, and columns that are left out.

use std::io::Read;

use super::{Delimited, Field};
use crate::input::Trouble;

impl<R: Read> Delimited<R> {
    /// The first row, where it looks like a header that nobody has told of: every field could be a name.
    pub(crate) fn untold_header(&mut self) -> Result<Option<String>, Trouble> {
        let Some(line) = self.first_line()? else { return Ok(None) };
        // What is malformed is told when it is read as a record.
        if self.split(line).is_err() {
            self.fields.clear();
            return Ok(None);
        }
        let is_name = |field: &Field| {
            let text = self.window.at(field.start..field.end);
            let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-. ".contains(byte);
            text.first().is_some_and(u8::is_ascii_alphabetic) && text.iter().all(is_of_name)
        };
        let is_header = self.fields.len() > 1 && self.fields.iter().all(is_name);
        Ok(is_header.then(|| String::from_utf8_lossy(self.window.at(0..line.content)).into_owned()))
    }

    /// The columns of the first row, once that is seen, that are not read: by their names, or by their numbers. None where
    /// it lacks one that is.
    pub(crate) fn left_out(&self) -> Vec<String> {
        let name = |place: usize| self.names.as_ref().and_then(|names| names.get(place));
        let called = |place| name(place).map_or((place + 1).to_string(), |name| format!("{name:?}"));
        let is_left_out = |place: &usize| self.chosen.iter().all(|chosen| chosen.place != *place);
        let all = 0..self.fields.len();
        let has_chosen = self.chosen.iter().all(|chosen| all.contains(&chosen.place));
        all.filter(|place| has_chosen && is_left_out(place)).map(called).collect()
    }
}
