//! Bytes that others wrote, where a person reads them: what would move the cursor, change colours or turn the
//! direction of text is shown escaped.

use std::io::{self, IsTerminal, StdoutLock, Write};

use crate::form::Form;

/// Standard output. To a terminal nothing goes but what can be seen, and line ends and tabs.
pub(crate) struct Screen<W = StdoutLock<'static>> {
    out: W,
    /// How bytes are escaped; not at all where no terminal shows them.
    escaped: Option<Form>,
    /// The beginning of a character whose end has not come yet.
    begun: Vec<u8>,
}

impl Screen {
    /// Standard output, of which JSON stays JSON.
    pub(crate) fn stdout(form: Form) -> Self {
        let out = io::stdout().lock();
        let escaped = out.is_terminal().then_some(form);
        Self { out, escaped, begun: Vec::new() }
    }
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(form) = self.escaped else { return self.out.write(bytes) };
        self.begun.extend_from_slice(bytes);
        let whole = whole_bytes(&self.begun);
        let mut shown = Vec::with_capacity(bytes.len());
        escape(&self.begun[..whole], form, &mut shown);
        self.begun.drain(..whole);
        self.out.write_all(&shown)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let (Some(form), false) = (self.escaped, self.begun.is_empty()) {
            let mut shown = Vec::new();
            escape(&std::mem::take(&mut self.begun), form, &mut shown);
            self.out.write_all(&shown)?;
        }
        self.out.flush()
    }
}

/// How much comes before a character that has only begun.
fn whole_bytes(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => {
            // What is no text before it hides whether the end is one that has begun.
            let tail = bytes.len().saturating_sub(3);
            let begun = (tail..bytes.len()).find(|&at| {
                std::str::from_utf8(&bytes[at..])
                    .is_err_and(|error| error.error_len().is_none() && error.valid_up_to() == 0)
            });
            begun.unwrap_or(bytes.len())
        }
    }
}

/// Appends bytes as they may be shown.
fn escape(bytes: &[u8], form: Form, out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            let code = letter as u32;
            // Writing to memory cannot fail.
            let _ = match (is_foreign(letter) && !matches!(letter, '\n' | '\t'), form) {
                (false, _) => write!(out, "{letter}"),
                (true, Form::Json) => write!(out, "\\u{code:04x}"),
                (true, Form::Text) if code < 0x80 => write!(out, "\\x{code:02x}"),
                (true, Form::Text) => write!(out, "\\u{{{code:x}}}"),
            };
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

/// Whether a letter does something else than to be seen.
fn is_foreign(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The longest message that is told.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// A message in one line, safe to be shown.
pub(crate) fn message(text: &str) -> String {
    let line = text.lines().collect::<Vec<_>>().join(" ");
    let mut cut = line.len().min(MESSAGE_BYTES_MAX);
    while !line.is_char_boundary(cut) {
        cut -= 1;
    }
    let mut shown = Vec::with_capacity(line.len());
    escape(&line.as_bytes()[..cut], Form::Text, &mut shown);
    if cut < line.len() {
        shown.extend_from_slice("…".as_bytes());
    }
    String::from_utf8_lossy(&shown).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(form: Form, pieces: &[&[u8]]) -> String {
        let mut screen = Screen { out: Vec::new(), escaped: Some(form), begun: Vec::new() };
        pieces.iter().for_each(|piece| screen.write_all(piece).unwrap());
        screen.flush().unwrap();
        String::from_utf8(screen.out).unwrap()
    }

    #[test]
    fn a_terminal_is_not_told_what_to_do() {
        assert_eq!(shown(Form::Text, &[b"a\x1b[31mred\tb\n"]), "a\\x1b[31mred\tb\n");
        assert_eq!(shown(Form::Text, &["é\u{9b}\u{202e}".as_bytes()]), "é\\u{9b}\\u{202e}");
        assert_eq!(shown(Form::Text, &[b"\xff\x00"]), "\\xff\\x00");
        assert_eq!(shown(Form::Json, &["\"\u{9b}\u{7f}\"\n".as_bytes()]), "\"\\u009b\\u007f\"\n");
    }

    #[test]
    fn letters_may_come_in_pieces() {
        assert_eq!(shown(Form::Text, &[b"\xff\xe2\x82", b"\xac", b"\xc3"]), "\\xff€\\xc3");
        assert_eq!(shown(Form::Text, &[b"\xe2", b"\x82", b"x"]), "\\xe2\\x82x");
    }

    #[test]
    fn a_message_is_a_line() {
        assert_eq!(message("one\r\ntwo \x1b[0m"), "one two \\x1b[0m");
        assert!(message(&"é".repeat(9999)).len() < MESSAGE_BYTES_MAX + 4);
    }
}
