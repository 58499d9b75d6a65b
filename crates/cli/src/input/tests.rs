//! Every format: whole, cut short, malformed, and through windows of every size, fed a few bytes at a time.

use std::io::{Cursor, Read};

use forebay_aggregate::Value;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::delimited::{Delimited, Dialect, Header};
use super::fixed::Fixed;
use super::format::Column;
use super::jsonl::Jsonl;
use super::lines::Lines;
use super::window::{Tail, Window};
use super::{Rows, Source, Trouble, TroubleKind};

/// A pipe that gives few bytes at a time.
struct Trickle<'a> {
    bytes: &'a [u8],
    at_once: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let length = self.at_once.min(out.len());
        let read = self.bytes.read(&mut out[..length])?;
        Ok(read)
    }
}

/// What a source gave: `key=value`, or `number@offset reason` of a bad record.
fn drain(source: &mut impl Source) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        match source.next() {
            Ok(None) => return seen,
            Ok(Some((key, value))) => {
                seen.push(format!("{}={}", String::from_utf8_lossy(key), String::from_utf8_lossy(value)));
            }
            Err(trouble) => {
                let at = source.position();
                seen.push(format!("{}@{} {}", at.number, at.offset, reason(&trouble)));
            }
        }
    }
}

fn reason(trouble: &Trouble) -> String {
    match &**trouble {
        TroubleKind::Bad(reason) => reason.clone(),
        TroubleKind::Read(error) => error.to_string(),
    }
}

/// Runs `read` on `text` through windows and reads of many sizes, and gives what all of them agree on.
fn same_through_all_windows(text: &[u8], read: impl Fn(Window<Trickle<'_>>) -> Vec<String>) -> Vec<String> {
    let all = read(Window::new(Trickle { bytes: text, at_once: usize::MAX }));
    for window_bytes in [0, 1, 2, 3, 7, 16, 64] {
        for at_once in [1, 2, 5, 1000] {
            let window = Window::with_sizes(Trickle { bytes: text, at_once }, window_bytes, 1 << 20);
            assert_eq!(read(window), all, "window of {window_bytes}, reads of {at_once}");
        }
    }
    all
}

fn lines(text: &str) -> Vec<String> {
    same_through_all_windows(text.as_bytes(), |window| drain(&mut Lines::new(window)))
}

fn fixed(text: &str, key_bytes: usize, value_bytes: usize) -> Vec<String> {
    same_through_all_windows(text.as_bytes(), |window| drain(&mut Fixed::new(window, key_bytes, value_bytes)))
}

fn delimited(text: &str, dialect: Dialect, header: Header, key: &str, value: &str) -> Vec<String> {
    let column = |text: &str| text.parse::<Column>().unwrap();
    same_through_all_windows(text.as_bytes(), |window| {
        match Delimited::new(window, dialect, header, &column(key), &column(value)) {
            Ok(mut source) => drain(&mut source),
            Err(trouble) => vec![reason(&trouble)],
        }
    })
}

fn csv(text: &str) -> Vec<String> {
    delimited(text, Dialect::Csv, Header::Absent, "1", "2")
}

fn tsv(text: &str) -> Vec<String> {
    delimited(text, Dialect::Tsv, Header::Absent, "1", "2")
}

fn jsonl(text: &str, value: Option<&str>) -> Vec<String> {
    same_through_all_windows(text.as_bytes(), |window| {
        drain(&mut Jsonl::new(window, "k".into(), value.map(String::from)).unwrap())
    })
}

const NOTHING: [&str; 0] = [];

#[test]
fn lines_are_keys() {
    assert_eq!(lines(""), NOTHING);
    assert_eq!(lines("a\nbb\n"), ["a=", "bb="]);
    assert_eq!(lines("a\r\nb\rc\r\n"), ["a=", "b\rc="]);
    assert_eq!(lines("a\n\nlast"), ["a=", "=", "last="]);
    assert_eq!(lines("a\nno newline behind a return\r"), ["a=", "no newline behind a return\r="]);
    assert_eq!(lines("\n"), ["="]);
}

#[test]
fn fixed_records_are_cut_by_length() {
    assert_eq!(fixed("", 2, 1), NOTHING);
    assert_eq!(fixed("ab1cd2", 2, 1), ["ab=1", "cd=2"]);
    assert_eq!(fixed("ab", 2, 0), ["ab="]);
    assert_eq!(fixed("\r\n", 0, 1), ["=\r", "=\n"]);
    assert_eq!(fixed("ab1cd", 2, 1), ["ab=1", "2@3 the input ends after 2 of the record's 3 bytes"]);
}

#[test]
fn rows_are_split_at_tabs() {
    assert_eq!(tsv(""), NOTHING);
    assert_eq!(tsv("a\t1\nb\t\n"), ["a=1", "b="]);
    assert_eq!(tsv("a\t\"1\r\n\r\n\nb\t2"), ["a=\"1", "b=2"]);
    assert_eq!(
        tsv("a\t1\nb\nc\t3\t4\nd\t5\n"),
        ["a=1", "2@4 1 column, where the first row has 2", "3@6 3 columns, where the first row has 2", "d=5"]
    );
    assert_eq!(tsv("a\n"), ["1@0 1 column, but number 2 is needed; --value chooses another"]);
}

#[test]
fn rows_are_split_at_commas_and_quotes_hold_them_together() {
    assert_eq!(csv(""), NOTHING);
    assert_eq!(csv("a,1\r\nb,2"), ["a=1", "b=2"]);
    assert_eq!(csv("\"a,\",\"1\"\n\"\",\"\"\"\"\n"), ["a,=1", "=\""]);
    assert_eq!(csv("a,\"two\r\nlines, \"\"quoted\"\"\"\r\nb,2\r\n"), ["a=two\r\nlines, \"quoted\"", "b=2"]);
    assert_eq!(csv("5\" pipe,1\n\"b\","), ["5\" pipe=1", "b="]);
    assert_eq!(csv("\"\"\"a\"\"\",x\"y\n"), ["\"a\"=x\"y"]);
}

#[test]
fn a_malformed_row_ends_with_its_line() {
    assert_eq!(
        csv("a,1\n\"b\"x,2\nc,3\n"),
        [
            "a=1",
            "2@4 neither a separator nor the end of the row behind the closing quote, at byte offset 7",
            "c=3"
        ]
    );
    assert_eq!(csv("a,\"1\nb,2\n"), ["1@0 the quote opened at byte offset 2 is never closed", "b=2"]);
    assert_eq!(csv("a,\"1"), ["1@0 the quote opened at byte offset 2 is never closed"]);
    assert_eq!(csv("a,1\nb,2,3\n\"c\",4"), ["a=1", "2@4 3 columns, where the first row has 2", "c=4"]);
}

#[test]
fn columns_have_names_where_there_is_a_header() {
    let named = |text, key, value| delimited(text, Dialect::Csv, Header::Present, key, value);
    assert_eq!(named("id,\"a \"\"name\"\"\"\n7,x\n", "a \"name\"", "id"), ["x=7"]);
    assert_eq!(named("\u{feff}id,name\n7,x\n", "id", "name"), ["7=x"]);
    assert_eq!(named("id,name\n7,x\n", "2", "1"), ["x=7"]);
    assert_eq!(named("id,name\n", "no", "id"), ["no column is called \"no\"; the first row has id, name"]);
    assert_eq!(named("id,name\n7\n", "id", "name"), ["1@8 1 column, where the first row has 2"]);
    assert_eq!(named("", "id", "name"), NOTHING);
}

#[test]
fn objects_have_fields() {
    assert_eq!(jsonl("", Some("v")), NOTHING);
    assert_eq!(jsonl("{\"k\":\"a\",\"x\":[{}],\"v\":\"1\"}\n", Some("v")), ["a=1"]);
    assert_eq!(jsonl(" {\"v\": {\"w\": 1.50}, \"k\": 7}\r\n\n  \n", Some("v")), ["7={\"w\": 1.50}"]);
    assert_eq!(jsonl("{\"k\":\"q\\\"\\u00e9\",\"v\":\"\\n\"}", Some("v")), ["q\"é=\n"]);
    assert_eq!(
        jsonl("{\"k\":null,\"v\":true}\n{\"\\u006b\":1,\"v\":2}", Some("v")),
        ["1@0 the key, field \"k\", is null", "1=2"]
    );
    assert_eq!(
        jsonl("{\"k\":1,\"v\":null}\n{\"k\":\"null\",\"v\":\"null\"}", Some("v")),
        ["1=", "null=null"]
    );
    assert_eq!(jsonl("{\"k\":\"a\"}\n", None), ["a={\"k\":\"a\"}"]);
    assert_eq!(jsonl("{\"k\":\"a\"}\n", Some("k")), ["a=a"]);
}

/// The columns of every row, `-` for one that has none, and as arguments, where those differ.
fn rows(mut rows: impl Rows, columns: usize) -> Vec<String> {
    let mut seen = Vec::new();
    while rows.advance().unwrap() {
        let text = |value: Value<'_>| match value {
            Value::Null => "-".into(),
            value => String::from_utf8_lossy(&value.to_text()).into_owned(),
        };
        let cell = |at| {
            let column = rows.column(at).map_or(Value::Null, Value::bytes);
            let (column, value) = (text(column), text(rows.value(at)));
            if column == value { column } else { format!("{column}({value})") }
        };
        seen.push((0..columns).map(cell).collect::<Vec<_>>().join("|"));
    }
    seen
}

#[test]
fn lines_may_end_with_returns_alone() {
    let [a, b] = ["a", "b"].map(|column| column.parse::<Column>().unwrap());
    let columns = [(&a, "--by"), (&b, "--fn")];
    for text in ["a,b\r1,2\r\"x\r\n\ry\",3\r", "\u{feff}\"a\",\"b\"\r1,2\r\"x\r\n\ry\",3"] {
        let seen = same_through_all_windows(text.as_bytes(), |window| {
            rows(Delimited::with_columns(window, Dialect::Csv, Header::Present, &columns).unwrap(), 2)
        });
        assert_eq!(seen, ["1|2", "x\r\n\ry|3"]);
    }
    // One kind of end it is.
    let refusal = |text: &'static str| {
        let window = Window::new(text.as_bytes());
        let mut rows = Delimited::with_columns(window, Dialect::Csv, Header::Present, &columns).unwrap();
        let trouble = std::iter::repeat_with(|| rows.advance()).find_map(Result::err).unwrap();
        format!("{trouble:?} {:?}", Rows::position(&rows))
    };
    assert!(refusal("a,b\n1,2\n3\r4,5\n").contains("a return stands outside of quotes"));
    assert!(refusal("a,b\n1,2\n\"\",4\r5,5\n").contains("at byte offset 12"));
    assert!(refusal("a,b\r1,2\r3,4\n5,6\r").contains("a newline stands outside of quotes"));
}

/// A last row without an end is left where it is, wherever it is cut off, and so is a header.
#[test]
fn a_row_that_may_go_on_is_left() {
    let [a, b] = ["a", "b"].map(|column| column.parse::<Column>().unwrap());
    let columns = [(&a, "--by"), (&b, "--fn")];
    let text = "a,b\n1,2\n\"x\ny\",3\r\n";
    let ends = [0, 4, 8, text.len()];
    for cut in 0..=text.len() {
        let window = Window::new(&text.as_bytes()[..cut]).with_tail(Tail::Left);
        let mut rows = Delimited::with_columns(window, Dialect::Csv, Header::Present, &columns);
        let rows = match &mut rows {
            Ok(rows) => rows,
            Err(error) => panic!("{error:?} at {cut}"),
        };
        let mut seen = 0;
        while rows.advance().unwrap() {
            seen += 1;
        }
        let whole = *ends.iter().rfind(|end| **end <= cut).unwrap();
        let expected = ends.iter().filter(|end| **end <= cut).count().saturating_sub(2);
        assert_eq!((seen, rows.end(), rows.left()), (expected, whole as u64, (cut - whole) as u64), "{cut}");
    }
    let mut rows = Jsonl::with_fields(
        Window::new(&b"{\"a\":1}\n{\"a\":1}"[..]).with_tail(Tail::Left),
        ["a".to_string()],
    )
    .unwrap();
    assert!(rows.advance().unwrap() && !rows.advance().unwrap());
    assert_eq!((rows.end(), rows.left()), (8, 7));
}

#[test]
fn rows_lend_any_of_their_columns() {
    let text = "a,b,c\n1,,\"two\nlines \"\"x\"\"\"\n,y,\"\"\n";
    let [b, c, a] = ["b", "c", "1"].map(|column| column.parse::<Column>().unwrap());
    let columns = [(&c, "--by"), (&a, "--by"), (&b, "--fn"), (&c, "--fn")];
    let seen = same_through_all_windows(text.as_bytes(), |window| {
        rows(Delimited::with_columns(window, Dialect::Csv, Header::Present, &columns).unwrap(), columns.len())
    });
    assert_eq!(seen, ["two\nlines \"x\"|1|(-)|two\nlines \"x\"", "(-)|(-)|y|(-)"]);
    let text = "{\"a\":\"\",\"b\":null,\"c\":\"null\"}\n\n{\"c\":[1, 2],\"a\":\"\\n\\\"\"}\n";
    let seen = same_through_all_windows(text.as_bytes(), |window| {
        rows(Jsonl::with_fields(window, ["a", "b", "c"].map(String::from)).unwrap(), 3)
    });
    assert_eq!(seen, ["|-|null", "\n\"|-|[1, 2]"]);
}

#[test]
fn malformed_objects_are_passed_over_one_by_one() {
    assert_eq!(
        jsonl("{\"k\":1}\nnope\n{\"k\":1,\"v\":2}\n[]\n{\"v\":1}\n{\"k\":2,\"v\":3} x\n{\"k\"", Some("v")),
        [
            "1@0 the object has no field \"v\"",
            "2@8 not JSON: expected ident, at byte 2 of the line",
            "1=2",
            "4@27 not JSON: invalid type: sequence, expected an object",
            "5@30 the object has no field \"k\"",
            "6@38 not JSON: trailing characters, at byte 15 of the line",
            "7@54 not JSON: EOF while parsing an object, at byte 4 of the line",
        ]
    );
    let bad = drain(&mut Jsonl::new(Window::new(&b"{\"k\":\"\xff\"}\n"[..]), "k".into(), None).unwrap());
    assert!(bad[0].starts_with("1@0 not JSON: "), "{bad:?}");
}

#[test]
fn a_record_over_the_limit_is_bad_and_the_next_is_not() {
    let text = format!("a,1\nb,{}\nc,3\nd,\"{}", "x".repeat(100), "y\n".repeat(40));
    let window = |text| Window::with_sizes(Cursor::new(text), 16, 64);
    let seen = drain(&mut Lines::new(window(text.clone())));
    assert_eq!(seen[..3], ["a,1=", "2@4 the record is longer than 64 bytes", "c,3="]);
    let place = |place| Column::Place(place);
    let mut source =
        Delimited::new(window(text), Dialect::Csv, Header::Absent, &place(0), &place(1)).unwrap();
    let seen = drain(&mut source);
    assert_eq!(
        seen[..4],
        ["a=1", "2@4 the record is longer than 64 bytes", "c=3", "4@111 the record is longer than 64 bytes"]
    );
    assert!(seen[4].starts_with("5@"), "reading goes on behind the line of the stray quote");
}

#[test]
fn a_record_may_be_far_larger_than_the_window() {
    let long = "x".repeat(5000);
    assert_eq!(lines(&format!("{long}\nb\n")), [format!("{long}="), "b=".to_string()]);
    assert_eq!(csv(&format!("a,\"{long}\n{long}\"\nb,2\n")), [format!("a={long}\n{long}"), "b=2".into()]);
    assert_eq!(fixed(&long, 4000, 1000), [format!("{}={}", "x".repeat(4000), "x".repeat(1000))]);
    assert_eq!(jsonl(&format!("{{\"k\":1,\"v\":\"{long}\"}}"), Some("v")), [format!("1={long}")]);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::with_cases(300)
    })]

    /// What a CSV library writes is read back field by field.
    #[test]
    fn written_csv_reads_back(
        rows in prop::collection::vec(("[a\",\r\n]{0,6}", "[b\",\r\n]{0,6}"), 0..8),
        crlf in any::<bool>(),
    ) {
        let terminator = if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
        let mut writer = csv::WriterBuilder::new().terminator(terminator).from_writer(Vec::new());
        for (key, value) in &rows {
            writer.write_record([key, value]).unwrap();
        }
        let text = writer.into_inner().unwrap();
        let mut source = Delimited::new(
            Window::with_sizes(&text[..], 4, 1 << 20),
            Dialect::Csv,
            Header::Absent,
            &Column::Place(0),
            &Column::Place(1),
        )
        .unwrap();
        let expected: Vec<String> = rows.iter().map(|(key, value)| format!("{key}={value}")).collect();
        prop_assert_eq!(drain(&mut source), expected);
    }

    /// No text makes a source panic, hang, or stop before its end.
    #[test]
    fn any_text_ends(text in "[a\",\r\n\t{}:]{0,40}") {
        let bytes = text.as_bytes();
        for dialect in [Dialect::Csv, Dialect::Tsv] {
            let place = |place| Column::Place(place);
            let mut source =
                Delimited::new(Window::with_sizes(bytes, 3, 16), dialect, Header::Absent, &place(0), &place(1))
                    .unwrap();
            drain(&mut source);
            prop_assert_eq!(source.bytes_read(), bytes.len() as u64);
        }
        let mut source = Jsonl::new(Window::with_sizes(bytes, 3, 16), "a".into(), None).unwrap();
        drain(&mut source);
        prop_assert_eq!(source.bytes_read(), bytes.len() as u64);
    }
}

/// Rows and what is wrong with some, each with its number and place.
fn placed(rows: &mut impl Rows, before: u64, seen: &mut Vec<String>) {
    loop {
        let outcome = rows.advance();
        let at = rows.position();
        let text = match &outcome {
            Ok(false) => return,
            Ok(true) => String::from_utf8_lossy(rows.column(0).unwrap_or_default()).into_owned(),
            Err(trouble) => format!("bad: {}", reason(trouble)),
        };
        seen.push(format!("{}@{} {text}", before + at.number, at.offset));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(8),
        ..ProptestConfig::with_cases(2000)
    })]

    /// Whatever a text is, its blocks have its rows and its faults, at their places.
    #[test]
    fn blocks_are_what_the_input_is(
        text in "(a|b|\"|\"\"|,|\t|\r|\n|\r\n|\"x\ny\"){0,40}",
        block_bytes in 1_usize..40,
        at_once in 1_usize..30,
    ) {
        let bytes = text.as_bytes();
        for dialect in [Dialect::Csv, Dialect::Tsv] {
            let first = Delimited::with_columns(Window::new(bytes), dialect, Header::Absent, &[(&Column::Place(0), "")]);
            let mut first = first.unwrap();
            while !first.head().is_known() && !matches!(first.advance(), Ok(false)) {}
            let head = first.head();
            let mut whole = Delimited::behind(Window::new(bytes), dialect, &head, [""]);
            let mut expected = Vec::new();
            placed(&mut whole, 0, &mut expected);
            let window = Window::with_sizes(Trickle { bytes, at_once }, 3, 1 << 20);
            let mut blocks = Delimited::behind(window, dialect, &head, [""]).into_blocks(block_bytes);
            let (mut seen, mut number) = (Vec::new(), 0);
            while let Some(block) = blocks.next(Vec::new()).unwrap() {
                let mut rows = Delimited::behind(Window::over(block), dialect, &head, [""]);
                placed(&mut rows, number, &mut seen);
                number += Rows::position(&rows).number;
            }
            prop_assert_eq!(seen, expected);
        }
    }
}

/// A stray quote in the first row had all of the input read into memory, in search of another.
#[test]
fn a_quote_inside_of_a_field_does_not_hold_up_the_first_row() {
    let text = [&b"size 5\" pipe,k\n"[..], &b"123456789,a\n".repeat(1 << 20)].concat();
    let mut unread = &text[..];
    let rows = Delimited::new(
        Window::new(&mut unread),
        Dialect::Csv,
        Header::Present,
        &"2".parse().unwrap(),
        &"1".parse().unwrap(),
    );
    assert_eq!(rows.map(|_| ()).map_err(|_| ()), Ok(()));
    assert!(text.len() - unread.len() <= 2 << 20, "{} bytes were read", text.len() - unread.len());
    // One that is never closed is not looked for without end either.
    let text = [&b"\"open,k\n"[..], &b"123456789,a\n".repeat(1 << 20)].concat();
    let mut unread = &text[..];
    let mut window = Window::new(&mut unread);
    assert_eq!(window.find_line_end(Some(b'"'), b',').map_err(|_| ()), Ok(b'\n'));
    drop(window);
    assert!(text.len() - unread.len() <= 2 << 20, "{} bytes were read", text.len() - unread.len());
}
