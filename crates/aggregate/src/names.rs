//! Names in lists such as `count,sum:"net, total"`: a word that holds a comma, a colon or a quote stands in double
//! quotes, with quotes doubled, as fields of csv do.

use std::borrow::Cow;

use crate::catalog::{FUNCTIONS, name_of};

/// The words between separators that do not stand in quotes, each as it is written.
pub fn split_words(text: &str, separator: char) -> Vec<&str> {
    let (mut words, mut start, mut at) = (Vec::new(), 0, 0);
    let mut begins = true;
    while let Some(next) = text[at..].chars().next() {
        if begins && let Some(quoted) = quoted_bytes(&text[at..]) {
            at += quoted;
            begins = false;
            continue;
        }
        if next == separator {
            words.push(&text[start..at]);
            start = at + next.len_utf8();
        }
        begins = matches!(next, ',' | ':') || begins && next == ' ';
        at += next.len_utf8();
    }
    words.push(&text[start..]);
    words
}

/// How many bytes the quoted word takes that stands here, if one does: quotes that nobody closes are text.
fn quoted_bytes(text: &str) -> Option<usize> {
    let mut rest = text.strip_prefix('"')?;
    loop {
        rest = &rest[rest.find('"')? + 1..];
        match rest.strip_prefix('"') {
            Some(behind) => rest = behind,
            None => break,
        }
    }
    let ends = rest.trim_start_matches(' ');
    (ends.is_empty() || ends.starts_with([',', ':'])).then_some(text.len() - rest.len())
}

/// What a word stands for.
pub fn unquoted(word: &str) -> Cow<'_, str> {
    match quoted_bytes(word) {
        Some(bytes) if bytes == word.len() => word[1..bytes - 1].replace("\"\"", "\"").into(),
        _ => word.into(),
    }
}

/// The word that stands for a name.
pub fn quoted(name: &str) -> Cow<'_, str> {
    match name.contains([',', ':', '"']) || name.trim() != name {
        true => format!("\"{}\"", name.replace('"', "\"\"")).into(),
        false => name.into(),
    }
}

/// The names of the columns that a function such as `top_k:price:10` is given.
pub fn columns_of(function: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let mut words = split_words(function, ':').into_iter();
    let name = words.next().unwrap_or_default();
    // `count` has two forms, of which the longer one comes last.
    let form = FUNCTIONS.iter().rfind(|(form, _)| name_of(form) == name).map_or("", |(form, _)| form);
    let kinds = form.split([':', '[', ']']).filter(|word| !word.is_empty()).skip(1);
    words
        .zip(kinds)
        .filter(|(_, kind)| matches!(*kind, "C" | "D" | "BY" | "WEIGHT"))
        .map(|(word, _)| unquoted(word))
}

/// That of these names which is most like this one, if any is much like it.
pub fn similar<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = 1 + name.chars().count() / 4;
    let near = |other: &'a str| (distance(&name.to_lowercase(), &other.to_lowercase()), other);
    names.into_iter().map(near).filter(|(distance, _)| *distance <= most).min().map(|(_, other)| other)
}

/// How many letters have to be added, left out, changed or swapped with the next to make one of the other (optimal
/// string alignment).
fn distance(one: &str, other: &str) -> usize {
    let [one, other]: [Vec<char>; 2] = [one, other].map(|word| word.chars().collect());
    let width = other.len() + 1;
    let (mut before, mut above, mut row) = (vec![0; width], vec![0; width], (0..width).collect::<Vec<_>>());
    for (line, letter) in one.iter().enumerate() {
        std::mem::swap(&mut before, &mut above);
        std::mem::swap(&mut above, &mut row);
        row[0] = line + 1;
        for (at, letter_of_other) in other.iter().enumerate() {
            let changed = above[at] + usize::from(letter != letter_of_other);
            let is_swapped =
                line > 0 && at > 0 && one[line - 1] == *letter_of_other && *letter == other[at - 1];
            let swapped = if is_swapped { before[at - 1] + 1 } else { usize::MAX };
            row[at + 1] = changed.min(row[at] + 1).min(above[at + 1] + 1).min(swapped);
        }
    }
    row[width - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_alike_are_found() {
        let names = ["city", "amount", "Kind"];
        assert_eq!(similar("amuont", names), Some("amount"));
        assert_eq!(similar("cities", names), None);
        assert_eq!(similar("kind", names), Some("Kind"));
        assert_eq!(similar("nosuch", names), None);
        assert_eq!(distance("flaw", "lawn"), 2);
        assert_eq!((distance("gte", "get"), distance("cvs", "csv"), distance("", "ab")), (1, 1, 2));
    }

    #[test]
    fn names_may_hold_what_separates_them() {
        for name in ["a", "a b", "a,b", "a:b", "\"", "say \"a,b\"", "", " a", ",", "é:"] {
            let list = format!("{0},x:{0}:{0}", quoted(name));
            let words = split_words(&list, ',');
            assert_eq!(words.len(), 2, "{list}");
            assert_eq!(unquoted(words[0]), name);
            let inner: Vec<_> = split_words(words[1], ':').into_iter().map(unquoted).collect();
            assert_eq!(inner, ["x", name, name]);
        }
    }

    #[test]
    fn quotes_that_nobody_closes_are_text() {
        assert_eq!(split_words("a:\",b", ','), ["a:\"", "b"]);
        assert_eq!(split_words("\"a\"b,c", ','), ["\"a\"b", "c"]);
        assert_eq!(split_words("count, sum:\"a,b\"", ','), ["count", " sum:\"a,b\""]);
        assert_eq!((&*unquoted("\""), &*unquoted("a\"\"")), ("\"", "a\"\""));
        assert_eq!(split_words("", ','), [""]);
    }
}
