//! Words and n-grams.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::{Draws, assert_alike_by_threads, write_gzip};
use crate::tool::{Folder, last_object};

/// Text of about this many words, of which a few are frequent, between all kinds of white space.
fn text(seed: u64, words: u64, distinct: u64) -> String {
    let mut draws = Draws::new(seed);
    let mut text = String::new();
    for _ in 0..words {
        let word = draws.skewed(distinct);
        match word % 5 {
            0 => text.push_str(&format!("{word}")),
            1 => text.push_str(&format!("Word{word}")),
            2 => text.push_str(&format!("word{}", word - 1)),
            3 => text.push_str(&format!("a\\longer\u{1}w\u{f6}rd-{word}")),
            _ => text.push_str(&format!("{word}{}", "x".repeat(word as usize % 40))),
        }
        text.push_str([" ", "\n", "\t", "  ", "\r\n", "\u{b}", "\u{c}"][draws.below(7) as usize]);
    }
    text
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '\n', '\t', '\r', '\u{b}', '\u{c}']).filter(|word| !word.is_empty())
}

/// The lines that counting these by words gives.
fn counted<'a>(items: impl Iterator<Item = Vec<&'a str>>) -> String {
    let mut counts: BTreeMap<Vec<&str>, u64> = BTreeMap::new();
    items.for_each(|item| *counts.entry(item).or_default() += 1);
    counts.into_iter().map(|(item, count)| format!("{}\t{count}\n", item.join(" "))).collect()
}

#[test]
fn words_are_counted_over_files_gzip_and_a_pipe() {
    let folder = Folder::new("words");
    let texts = [text(1, 20_000, 3000), text(2, 20_000, 3000), text(3, 5000, 3000)];
    std::fs::write(folder.path("a.txt"), &texts[0]).unwrap();
    write_gzip(&folder, "b", texts[1].as_bytes());
    let whole = texts.join(" ");
    let expected = counted(split(&whole).map(|word| vec![word]));
    let words = "aggregate --by word a.txt b -";
    assert_eq!(folder.ok_on(words, texts[2].as_bytes()), expected);

    let mut unsorted: Vec<String> = folder
        .ok_on(&format!("{words} --unsorted"), texts[2].as_bytes())
        .lines()
        .map(str::to_string)
        .collect();
    unsorted.sort_unstable();
    let mut lines: Vec<&str> = expected.lines().collect();
    lines.sort_unstable();
    assert_eq!(unsorted, lines);

    let folded = whole.to_ascii_lowercase();
    let expected = counted(split(&folded).map(|word| vec![word]));
    assert_eq!(folder.ok_on(&format!("{words} --fold-case"), texts[2].as_bytes()), expected);
    assert_eq!(folder.ok_on("aggregate --by word", b" \n"), "");
}

#[test]
fn the_largest_come_first_and_among_equals_the_first_by_key() {
    let folder = Folder::new("top");
    let input = b"b b a a d c c c e";
    assert_eq!(folder.ok_on("aggregate --by word --top 4", input), "c\t3\na\t2\nb\t2\nd\t1\n");
    assert_eq!(folder.ok_on("aggregate --by word --top 100", input).lines().count(), 5);
    let text = text(4, 30_000, 5000);
    let all = folder.ok_on("aggregate --by word", text.as_bytes());
    let mut lines: Vec<(&str, u64)> = all
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(word, count)| (word, count.parse().unwrap()))
        .collect();
    lines.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    let expected: String = lines[..50].iter().map(|(word, count)| format!("{word}\t{count}\n")).collect();
    assert_eq!(folder.ok_on("aggregate --by word --top 50", text.as_bytes()), expected);
}

#[test]
fn ngrams_are_windows_of_each_file() {
    let folder = Folder::new("ngrams");
    let texts = [text(5, 5000, 40), text(6, 5000, 40)];
    std::fs::write(folder.path("a.txt"), &texts[0]).unwrap();
    write_gzip(&folder, "b.txt.gz", texts[1].as_bytes());
    let words = texts.each_ref().map(|text| split(text).collect::<Vec<_>>());
    for n in [1, 2, 3, 4, 5, 7] {
        let windows = words.iter().flat_map(|words| words.windows(n).map(<[&str]>::to_vec));
        assert_eq!(folder.ok(&format!("aggregate --by ngram:{n} a.txt b.txt.gz")), counted(windows), "{n}");
    }
    assert_eq!(folder.ok_on("aggregate --by ngram:2 --top 1 --fold-case", b"A b a B c a b"), "a b\t3\n");
    assert_eq!(folder.ok_on("aggregate --by ngram:3", b"a b"), "");
}

#[test]
fn what_does_not_fit_memory_is_counted_all_the_same() {
    let folder = Folder::new("spill");
    std::fs::create_dir(folder.path("temp")).unwrap();
    let mut whole = String::new();
    for (by, distinct) in [("ngram:3", 5000), ("word", 400_000)] {
        whole = text(7, 400_000, distinct);
        std::fs::write(folder.path("text"), &whole).unwrap();
        for order in ["", " --top 30"] {
            let words = format!("aggregate --by {by} text --temp temp{order}");
            let figures = last_object(&folder.ok(&format!("{words} --json")));
            let little = folder.ok(&format!("{words} --json --memory 2M"));
            let spilled = last_object(&little);
            assert_eq!(
                (figures["spilled"].as_bool(), spilled["spilled"].as_bool()),
                (Some(false), Some(true))
            );
            for name in ["records", "groups", "input_bytes"] {
                assert_eq!(figures[name], spilled[name], "{name}");
            }
            assert!(spilled["memory_bytes"].as_u64().unwrap() <= 8 << 20, "{spilled}");
            assert_eq!(folder.ok(&format!("{words} --memory 2M")), folder.ok(&words), "{words}");
            assert_eq!(std::fs::read_dir(folder.path("temp")).unwrap().count(), 0, "nothing is left there");
        }
    }
    let expected = counted(split(&whole).map(|word| vec![word]));
    assert_eq!(folder.ok("aggregate --by word text --memory 2M"), expected);
}

#[test]
fn the_last_object_tells_what_it_came_to() {
    let folder = Folder::new("figures-of-groups");
    let lines = folder.ok_on("aggregate --by word --json", b"b a b \xff");
    assert!(lines.starts_with(
        "{\"type\":\"group\",\"key\":\"a\",\"count\":1}\n{\"type\":\"group\",\"key\":\"b\",\"count\":2}\n\
         {\"type\":\"group\",\"key_hex\":\"ff\",\"count\":1}\n"
    ));
    let figures = last_object(&lines);
    for (name, number) in [("records", 4), ("groups", 3), ("skipped", 0), ("input_bytes", 7)] {
        assert_eq!(figures[name], number, "{name}");
    }
    for name in ["seconds", "records_per_second", "output_seconds", "memory_bytes", "bytes_per_group"] {
        assert!(figures[name].as_f64().is_some_and(|figure| figure >= 0.0), "{name} in {figures}");
    }
    assert_eq!(figures["spilled"], false);
    let top = last_object(&folder.ok_on("aggregate --by word --json --top 1", b"b a b"));
    assert_eq!(top["groups"], 2, "groups that are not shown count too");

    let text = folder.ok_on("aggregate --by word --out words.csv", b"a,b \"c\" d");
    assert!(text.starts_with("3 records, 3 groups, 9 B of input in "), "{text}");
    let written = std::fs::read_to_string(folder.path("words.csv")).unwrap();
    assert_eq!(written, "\"\"\"c\"\"\",1\n\"a,b\",1\nd,1\n");
    assert_eq!(folder.ok_on("aggregate --by word --json --out words.tsv", b"a\\b").lines().count(), 1);
    assert_eq!(std::fs::read_to_string(folder.path("words.tsv")).unwrap(), "a\\b\t1\n");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = Folder::new("aggregate-head");
    let words: String = (0..200_000).map(|word| format!("{word}\n")).collect();
    std::fs::write(folder.path("text"), words).unwrap();
    let mut child = folder
        .command(&["aggregate", "--by", "word", "text"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((&line[..], output.status.code(), output.stderr.len()), ("0\t1\n", Some(0), 0));
}

/// More than one part of them is put in order in memory; what all words begin with tells no parts apart.
#[test]
fn groups_come_in_order_part_by_part() {
    let folder = Folder::new("order-by-parts");
    for (prefix, count) in [("", 300_000), (&"p".repeat(200)[..], 60_000)] {
        let word = |number: u64| format!("{prefix}{number:06}");
        // Each once: the step has no factor in common with their number.
        let words: String = (0..count).map(|at| word(at * 7_919 % count) + "\n").collect();
        std::fs::write(folder.path("words.txt"), words).unwrap();
        let expected: String = (0..count).map(|number| word(number) + "\t1\n").collect();
        let found = folder.ok("aggregate --by word words.txt");
        assert!(found == expected, "{count} words are not in order");
    }
}

/// Chunks are read beside each other: what is counted and told is the same with any number of threads.
#[test]
fn readers_of_text_beside_each_other_tell_what_one_tells() {
    let folder = Folder::new("text-readers");
    let long = "y".repeat(70_000);
    let [sound, tail] = [text(8, 150_000, 20_000), text(9, 40_000, 300)];
    assert!(sound.len() > 1 << 20, "it is to be several chunks");
    std::fs::write(folder.path("a.txt"), &sound).unwrap();
    write_gzip(&folder, "b", tail.as_bytes());
    std::fs::write(folder.path("bad.txt"), format!("{sound} {long} {tail} {long}")).unwrap();
    for words in [
        "--by word a.txt b -",
        "--by word --fold-case bad.txt a.txt --skip-bad --memory 100M",
        "--by ngram:3 b a.txt b --memory 200M",
        "--by ngram:2 bad.txt --skip-bad --top 20 --memory 100M",
        "--by word a.txt bad.txt",
        "--by ngram:2 bad.txt none.txt",
    ] {
        assert_alike_by_threads(&folder, words, tail.as_bytes());
    }
    let number = split(&sound).count() + 1;
    let told = format!("bad.txt: record {number} at byte offset {}", sound.len() + 1);
    for by in ["word", "ngram:2"] {
        folder
            .run(&format!("aggregate --by {by} a.txt bad.txt"))
            .refused(1, &[&told, "more than 65536 bytes"]);
    }
}
