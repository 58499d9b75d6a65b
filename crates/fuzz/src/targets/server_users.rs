//! The file of users of the server: any text is refused, or makes users that make the same ones when they are written and
//! read again.

use forebay_env::Rng;
use forebay_server::parsers;

use crate::draws::one_of;

const WORDS: [&str; 40] = [
    "on",
    "off",
    "nopass",
    "resetpass",
    "allkeys",
    "resetkeys",
    "allchannels",
    "resetchannels",
    "allcommands",
    "nocommands",
    "reset",
    "+@all",
    "-@all",
    "+@read",
    "-@dangerous",
    "+@write",
    "-@string",
    "+get",
    "-get",
    "+set",
    "+config",
    "-config",
    "+config|get",
    "-config|get",
    "+acl|list",
    "-agg.add",
    "~*",
    "~a*",
    "%R~b",
    "%W~b",
    "%RW~c",
    "%~x",
    "&*",
    "&news",
    ">secret",
    "<secret",
    "!00",
    "#5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8",
    "+nope",
    "(~a)",
];

pub(crate) fn fuzz(rng: &mut Rng) {
    let mut text = Vec::new();
    for number in 0..=rng.below(4) {
        text.extend(format!("user u{number}").into_bytes());
        for _ in 0..rng.below(12) {
            text.push(b' ');
            // Most words are sound, or nearly no line would be.
            let words = if rng.chance(2) { &WORDS[..] } else { &WORDS[..31] };
            let word = one_of(rng, words);
            text.extend(word.as_bytes());
        }
        text.push(b'\n');
    }
    for _ in 0..if rng.chance(30) { rng.below(4) } else { 0 } {
        let at = rng.below(text.len() as u64) as usize;
        text[at] = one_of(rng, b"\n\r\0 ~%&+-@|#>*[]\\\xffuon");
    }
    if let Ok(shown) = parsers::users(&text) {
        assert_eq!(parsers::users(&shown), Ok(shown), "of {}", text.escape_ascii());
    }
}
