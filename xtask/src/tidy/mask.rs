//! Rust text with its comments and literals blanked, so that a brace or a word found in what remains is
//! code. Newlines stay where they are, and so do lengths in bytes.
//!
//! 1. Line comments end at the newline; block comments nest.
//! 2. Strings end at an unescaped quote; raw strings at a quote and as many `#` as they began with.
//! 3. A quote begins a character literal, unless it is a lifetime: one character and no second quote.

/// `text`, blanked.
pub(super) fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => line_comment_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => block_comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if starts_raw_string(bytes, at) => raw_string_end(bytes, at),
            b'\'' => char_end(bytes, at),
            _ => {
                at += 1;
                continue;
            }
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn line_comment_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |length| at + length)
}

fn block_comment_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn starts_raw_string(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| bytes[before]);
    let inside_a_name = before
        .is_some_and(|byte| byte == b'_' || byte.is_ascii_alphanumeric() && !matches!(byte, b'b' | b'c'));
    let hashes = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
    !inside_a_name && bytes.get(at + 1 + hashes) == Some(&b'"')
}

fn raw_string_end(bytes: &[u8], at: usize) -> usize {
    let hashes = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
    let mut closing = vec![b'#'; hashes + 1];
    closing[0] = b'"';
    let start = at + hashes + 2;
    bytes[start..]
        .windows(closing.len())
        .position(|window| window == closing)
        .map_or(bytes.len(), |length| start + length + closing.len())
}

fn char_end(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at + 1) == Some(&b'\\') {
        let from = at + 3;
        return bytes
            .get(from..)
            .and_then(|rest| rest.iter().position(|&byte| byte == b'\''))
            .map_or(bytes.len(), |length| from + length + 1);
    }
    // One character of one to four bytes, then a quote; anything else is a lifetime.
    let character = bytes.get(at + 1).map_or(1, |&first| match first {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    });
    if bytes.get(at + 1 + character) == Some(&b'\'') { at + character + 2 } else { at + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_remains() {
        for (text, code) in [
            ("a // { b\nc", "a c"),
            ("a /* { /* } */ \" */ b", "a b"),
            (r#"f("{ \" }", b"{")"#, "f( , b )"),
            (r##"f(r#"{ " }"#, br"{")"##, "f( , b )"),
            ("match c { '{' | '\\'' | '\\u{7d}' => 'a: {} }", "match c { | | => a: {} }"),
            ("str\"{\"", "str"),
            ("'é' {", "{"),
        ] {
            let masked = code_only(text);
            assert_eq!(masked.len(), text.len(), "of {text}");
            assert_eq!(masked.split_whitespace().collect::<Vec<_>>().join(" "), code, "of {text}");
        }
    }

    #[test]
    fn unfinished_text_ends() {
        for text in ["/* a", "\"a", "r#\"a", "'\\", "'", "\"\\"] {
            assert_eq!(code_only(text).len(), text.len());
        }
    }
}
