//! The dumps of bytes in a document of `docs/format`, and the tables below them that say what the bytes mean.

use std::path::Path;

const ROW_BYTES: usize = 16;

/// The bytes of each dump, after a check that the text beside the bytes and the table below them agree with the bytes.
pub(super) fn examples(document: &str) -> Vec<Vec<u8>> {
    let mut dumps: Vec<Vec<u8>> = Vec::new();
    for (index, part) in read(document).split("```").enumerate() {
        if index % 2 == 1 && part.starts_with("\n00000000: ") {
            dumps.push(parse(part));
        } else if let Some(dump) = dumps.last() {
            let rows = part.lines().filter(|line| line.starts_with("| 0x") || line.starts_with("| `"));
            rows.fold(0, |at, row| check_note(row, at, dump, document));
        }
    }
    dumps
}

#[expect(clippy::disallowed_methods, reason = "documents are files of the repository")]
fn read(document: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format");
    String::from_utf8(std::fs::read(folder.join(document)).unwrap()).unwrap()
}

/// Rows that are left out are zeros; a line `*` stands for repetitions of the row before.
fn parse(dump: &str) -> Vec<u8> {
    let (mut bytes, mut filler) = (Vec::new(), [0; ROW_BYTES]);
    for line in dump.lines().filter(|line| !line.is_empty()) {
        if line == "*" {
            filler = *bytes.last_chunk().unwrap();
            continue;
        }
        let at = usize::from_str_radix(&line[..8], 16).unwrap();
        while bytes.len() < at {
            bytes.extend(filler);
        }
        let row = bytes_of(&line[10..49]);
        assert_eq!(line, print_row(at, &row));
        bytes.extend(row);
        filler = [0; ROW_BYTES];
    }
    bytes
}

/// Compares the bytes in a row of a table with those at their place, and returns the end of them. A row without a
/// place goes on where the one before ended.
fn check_note(row: &str, mut at: usize, dump: &[u8], document: &str) -> usize {
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let place = cells[1].strip_prefix("0x").map(|place| usize::from_str_radix(place, 16).unwrap());
    at = place.unwrap_or(at);
    let pieces = if place.is_some() { cells[2] } else { cells[1] };
    for piece in pieces.split('`').skip(1).step_by(2) {
        let mut bytes = bytes_of(piece.trim_end_matches(" …"));
        if piece.ends_with('…') {
            bytes.resize(8, 0);
        }
        // Behind the dump all is zeros.
        let dumped: Vec<u8> =
            dump.iter().skip(at).chain(&[0; ROW_BYTES]).take(bytes.len()).copied().collect();
        assert_eq!(dumped, bytes, "{document}: {row}");
        at += bytes.len();
    }
    at
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// The bytes as a document has them.
pub(super) fn print(bytes: &[u8]) -> String {
    let (mut text, mut before) = (String::new(), &[0; ROW_BYTES][..]);
    for (index, row) in bytes.chunks(ROW_BYTES).enumerate() {
        if row != before && row.iter().any(|&byte| byte != 0) {
            text += &print_row(ROW_BYTES * index, row);
            text.push('\n');
        }
        before = row;
    }
    text
}

fn print_row(at: usize, row: &[u8]) -> String {
    let pairs = row.chunks(2).map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let hex = pairs.collect::<Vec<_>>().join(" ");
    let letter = |&byte: &u8| if byte == b' ' || byte.is_ascii_graphic() { byte as char } else { '.' };
    format!("{at:08x}: {hex:<40} {}", row.iter().map(letter).collect::<String>())
}
