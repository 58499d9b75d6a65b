//! Requests of the Redis protocol: however bytes are divided, damaged ones too, they are the same requests, and end with the
//! same error.

use forebay_env::Rng;
use forebay_server::parsers;

use crate::draws::one_of;

fn argument(rng: &mut Rng) -> Vec<u8> {
    let length = one_of(rng, &[0, 1, 3, 20, 300, 5000]);
    (0..length).map(|_| one_of(rng, b"*$\r\n-:0193 aZ\"\\\xff")).collect()
}

fn request(rng: &mut Rng) -> Vec<u8> {
    let arguments: Vec<Vec<u8>> = (0..=rng.below(5)).map(|_| argument(rng)).collect();
    if rng.chance(20) {
        return [arguments.join(&b' '), b"\r\n".into()].concat();
    }
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in &arguments {
        bytes.extend(format!("${}\r\n", argument.len()).into_bytes());
        bytes.extend(argument);
        bytes.extend(b"\r\n");
    }
    bytes
}

pub(crate) fn fuzz(rng: &mut Rng) {
    let mut bytes: Vec<u8> = (0..=rng.below(8)).flat_map(|_| request(rng)).collect();
    for _ in 0..rng.below(4) {
        let at = rng.below(bytes.len() as u64) as usize;
        match rng.below(4) {
            0 => bytes[at] = one_of(rng, b"*$\r\n-0919 x"),
            1 => bytes.insert(at, one_of(rng, b"*$\r\n-0919 x")),
            2 => bytes.truncate(at.max(1)),
            _ => drop(bytes.remove(at)),
        }
        if bytes.is_empty() {
            return;
        }
    }
    let whole = parsers::requests([&bytes[..]]);
    let (mut pieces, mut rest) = (Vec::new(), &bytes[..]);
    while !rest.is_empty() {
        let length = one_of(rng, &[1, 1, 2, 7, 100, 4096]).min(rest.len());
        let (piece, behind) = rest.split_at(length);
        pieces.push(piece);
        rest = behind;
    }
    assert_eq!(parsers::requests(pieces), whole, "in pieces");
}
