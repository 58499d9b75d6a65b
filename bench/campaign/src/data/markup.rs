//! The text of a page of HTML.

/// Characters that pages write as a name.
const NAMED: [(&[u8], &[u8]); 6] =
    [(b"amp", b"&"), (b"gt", b">"), (b"lt", b"<"), (b"nbsp", b" "), (b"quot", b"\""), (b"#39", b"'")];
/// Elements whose content is no text.
const HIDDEN: [&[u8]; 2] = [b"script", b"style"];

/// What stands between the tags, with a space for each tag.
pub(super) fn text(page: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(page.len() / 2);
    let mut rest = page;
    while let Some(start) = rest.iter().position(|byte| matches!(byte, b'<' | b'&')) {
        text.extend_from_slice(&rest[..start]);
        rest = &rest[start..];
        if rest[0] == b'&' {
            rest = character(rest, &mut text);
        } else {
            text.push(b' ');
            rest = behind_tag(rest);
        }
    }
    text.extend_from_slice(rest);
    text.push(b'\n');
    text
}

/// Appends what `rest` begins with.
fn character<'a>(rest: &'a [u8], text: &mut Vec<u8>) -> &'a [u8] {
    for (name, meaning) in NAMED {
        if rest[1..].starts_with(name) && rest.get(1 + name.len()) == Some(&b';') {
            text.extend_from_slice(meaning);
            return &rest[name.len() + 2..];
        }
    }
    text.push(rest[0]);
    &rest[1..]
}

/// What follows the tag that `rest` begins with, and its content where that is hidden.
fn behind_tag(rest: &[u8]) -> &[u8] {
    let Some(end) = rest.iter().position(|byte| *byte == b'>') else { return &[] };
    let (tag, behind) = rest.split_at(end + 1);
    let is = |name: &&&[u8]| tag[1..].starts_with(name) && !tag[1 + name.len()].is_ascii_alphanumeric();
    let Some(hidden) = HIDDEN.iter().find(is) else { return behind };
    let closes =
        |place: &usize| behind[*place..].starts_with(b"</") && behind[place + 2..].starts_with(hidden);
    (0..behind.len()).find(closes).map_or(&[], |place| &behind[place..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_scripts_and_names_of_characters_go() {
        let of = |page: &str| String::from_utf8(text(page.as_bytes())).unwrap();
        assert_eq!(of("<p class=\"a\">The <b>cat</b> &amp; dog</p>"), " The  cat  & dog \n");
        assert_eq!(of("a<script>if (a<b) c</script>d<style>e</style>f<styled>g"), "a  d  f g\n");
        assert_eq!(of("1 &lt; 2 & &#39;3&#39; &unknown;"), "1 < 2 & '3' &unknown;\n");
        assert_eq!(of("open <a href"), "open  \n");
        assert_eq!(of("<script>never closed"), " \n");
        assert_eq!(of(""), "\n");
    }
}
