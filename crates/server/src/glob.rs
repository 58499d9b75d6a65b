//! Patterns of names: `*`, `?`, `[a-z]`, `[^a]` and `\` before any of them, without recursion: at most as many steps as
//! pattern and name have bytes, multiplied.

use crate::commands::Refusal;

const PATTERN_BYTES_MAX: usize = 1024;

/// A pattern that does not take too long: there are as many steps as it has bytes, for each of a name.
pub(crate) fn checked(pattern: &[u8]) -> Result<&[u8], Refusal> {
    match pattern.len() > PATTERN_BYTES_MAX {
        true => Err(format!("ERR a pattern has at most {PATTERN_BYTES_MAX} bytes").into()),
        false => Ok(pattern),
    }
}

/// Whether a whole name matches.
pub(crate) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    counted(pattern, name, &mut 0)
}

/// The same, and adds how many steps that were.
pub(crate) fn counted(pattern: &[u8], name: &[u8], steps: &mut usize) -> bool {
    let (mut at, mut seen) = (0, 0);
    // Where to go on when what follows a star does not match: behind the star, and the byte that it takes next.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at + 1, seen));
            at += 1;
            *steps += 1;
            continue;
        }
        let (fits, length) = match name.get(seen) {
            None if at == pattern.len() => return true,
            None => (false, 1),
            Some(byte) => one(&pattern[at..], *byte),
        };
        *steps += length;
        match (fits, star) {
            (true, _) => (at, seen) = (at + length, seen + 1),
            (false, Some((behind, taken))) if taken < name.len() => {
                star = Some((behind, taken + 1));
                (at, seen) = (behind, taken + 1);
            }
            _ => return false,
        }
    }
}

/// Whether a byte matches the first piece of a pattern, and how long that is.
fn one(pattern: &[u8], byte: u8) -> (bool, usize) {
    match pattern {
        [] => (false, 1),
        [b'?', ..] => (true, 1),
        [b'\\', escaped, ..] => (*escaped == byte, 2),
        [b'[', class @ ..] => {
            let (is_in, length) = in_class(class, byte);
            (is_in, 1 + length)
        }
        [literal, ..] => (*literal == byte, 1),
    }
}

/// Whether a byte is in a class, and how long that is, its bracket included. One that does not end goes to the end.
fn in_class(class: &[u8], byte: u8) -> (bool, usize) {
    let is_negative = class.first() == Some(&b'^');
    let (mut at, mut is_in) = (usize::from(is_negative), false);
    while at < class.len() && class[at] != b']' {
        match class[at..] {
            [b'\\', escaped, ..] => {
                is_in |= escaped == byte;
                at += 2;
            }
            [from, b'-', to, ..] if to != b']' => {
                is_in |= (from.min(to)..=from.max(to)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                is_in |= literal == byte;
                at += 1;
            }
            [] => {}
        }
    }
    (is_in != is_negative, (at + 1).min(class.len()))
}

#[cfg(test)]
mod tests {
    use super::{counted, matches};

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "abc", true),
            ("a*c", "abbbc", true),
            ("a*c", "abbbd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[c-a]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a]x", "bx", true),
            ("\\*a", "*a", true),
            ("\\*a", "ba", false),
            ("user:*:name", "user:17:name", true),
            ("user:*:name", "user:17:names", false),
            ("*a*b*c*", "xxaxxbxxcxx", true),
            ("[a", "a", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    /// By recursion this would take for ever.
    #[test]
    fn many_stars_take_few_steps() {
        let (name, mut steps) = ("a".repeat(1 << 12), 0);
        assert!(!counted(("*a".repeat(200) + "b").as_bytes(), name.as_bytes(), &mut steps));
        assert!((1 << 12..401 << 12).contains(&steps), "{steps}");
    }
}
