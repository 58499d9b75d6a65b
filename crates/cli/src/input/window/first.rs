//! What the first bytes of an input tell: its encoding, and what lines end with.

use std::io::Read;

use super::{Tail, Trouble, TroubleKind, WINDOW_BYTES, Window};

impl<R: Read> Window<R> {
    /// Passes over a UTF-8 byte order mark, if the input begins with one. Text of wider units, with its mark or
    /// without, is refused: all that divides it into records and fields would be taken for bytes of them.
    pub(crate) fn skip_byte_order_mark(&mut self) -> Result<(), Trouble> {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        while self.end - self.start < 4 && !self.ended {
            self.fill()?;
        }
        let wide = match self.bytes[self.start..self.end] {
            [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
            [1..=255, 0, 1..=255, 0, ..] => Some("UTF-16LE"),
            [0, 1..=255, 0, 1..=255, ..] => Some("UTF-16BE"),
            _ => None,
        };
        if let Some(name) = wide {
            let reason = format!(
                "this is {name} text, and UTF-8 is read only; `iconv -f {name} -t UTF-8` makes it that"
            );
            return Err(TroubleKind::bad(reason));
        }
        if self.bytes[self.start..self.end].starts_with(MARK) {
            self.consume(MARK.len());
        }
        Ok(())
    }

    /// What the first line ends with that does not end inside of quotes: `\r` where no `\n` follows it, else `\n`. As
    /// where rows are split, quotes mean something at a field's ends only. What has no end in a window's bytes has
    /// `\n`.
    pub(crate) fn find_line_end(&mut self, quote: Option<u8>, separator: u8) -> Result<u8, Trouble> {
        let (mut searched, mut is_quoted, mut may_open) = (0, false, true);
        loop {
            let bytes = &self.bytes[self.start..self.end];
            while let Some(byte) = bytes.get(searched) {
                match byte {
                    b'\n' if !is_quoted => return Ok(b'\n'),
                    b'\r' if !is_quoted => match bytes.get(searched + 1) {
                        Some(b'\n') => return Ok(b'\n'),
                        None if !self.ended => break,
                        // A newline may follow once the input goes on.
                        None if self.tail == Tail::Left => return Ok(b'\n'),
                        _ => return Ok(b'\r'),
                    },
                    // One that follows the closing one is doubled.
                    byte if Some(*byte) == quote && is_quoted => (is_quoted, may_open) = (false, true),
                    byte if Some(*byte) == quote && may_open => is_quoted = true,
                    byte => may_open = *byte == separator,
                }
                searched += 1;
            }
            if self.ended || searched >= WINDOW_BYTES {
                return Ok(b'\n');
            }
            self.fill()?;
        }
    }
}
