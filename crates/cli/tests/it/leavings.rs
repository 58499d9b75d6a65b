//! What a command leaves: whole results, or what was there before.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use crate::tool::{Folder, last_object};

/// The names in the folder.
fn names(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path(".")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_input_may_also_be_the_output() {
    let folder = Folder::new("out-is-in");
    let rows = "k,v\na,1\nb,2\na,3\n";
    std::fs::write(folder.path("m.csv"), rows).unwrap();
    std::os::unix::fs::symlink("m.csv", folder.path("link.csv")).unwrap();
    folder.ok("aggregate --by column:k --fn sum:v --out link.csv m.csv");
    assert_eq!(std::fs::read_to_string(folder.path("m.csv")).unwrap(), "k,sum:v\na,4\nb,2\n");
    assert!(folder.path("link.csv").symlink_metadata().unwrap().is_symlink(), "a link stays one");
    assert_eq!(names(&folder), ["link.csv", "m.csv"]);
}

#[test]
fn work_that_fails_leaves_what_was_there() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("out-fails");
    std::fs::write(folder.path("bad.csv"), "k,v\na,1\na,one\n").unwrap();
    std::fs::write(folder.path("good.csv"), "k,v\na,1\n").unwrap();
    std::fs::write(folder.path("odd.csv"), b"k,v\n\xff,1\n").unwrap();
    for out in ["out.csv", "out.parquet"] {
        let words = format!("aggregate --by column:k --fn sum:v --out {out}");
        folder.run(&format!("{words} bad.csv")).refused(1, &["record 2"]);
        assert!(!folder.path(out).exists(), "nothing is there where nothing was");
        std::fs::write(folder.path(out), "precious").unwrap();
        folder.run(&format!("{words} bad.csv")).refused(1, &["record 2"]);
        assert_eq!(std::fs::read(folder.path(out)).unwrap(), b"precious");
    }
    folder.run("aggregate --by column:k --out out.parquet odd.csv").refused(1, &["UTF-8"]);
    assert_eq!(std::fs::read(folder.path("out.parquet")).unwrap(), b"precious");
    std::fs::set_permissions(folder.path("out.csv"), std::fs::Permissions::from_mode(0o640)).unwrap();
    folder.ok("aggregate --by column:k --fn sum:v --out out.csv good.csv");
    let about = std::fs::metadata(folder.path("out.csv")).unwrap();
    assert_eq!((about.len(), about.permissions().mode() & 0o777), (12, 0o640));
    assert_eq!(names(&folder), ["bad.csv", "good.csv", "odd.csv", "out.csv", "out.parquet"]);
    std::fs::create_dir(folder.path("dir.csv")).unwrap();
    folder.run("aggregate --by column:k --out dir.csv good.csv").refused(1, &["dir.csv", "directory"]);
    let missing = folder.run("aggregate --by column:k --out nowhere/x.csv good.csv");
    missing.refused(1, &["cannot write nowhere/x.csv: No such file or directory"]);
    assert!(!missing.stderr.contains(".part"), "{missing:?}");
    folder.run("aggregate --by column:k --out /dev/full good.csv").refused(2, &[".parquet"]);
}

#[test]
fn a_command_that_fails_leaves_no_empty_database() {
    let folder = Folder::new("no-stub");
    std::fs::write(folder.path("f.csv"), "k,v\na,one\n").unwrap();
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.run("aggregate --store db f.csv").refused(2, &["--by"]);
    folder.run("aggregate --store db --by column:q f.csv").refused(1, &["\"q\""]);
    folder.run("aggregate --store db --by column:k --fn sum:v f.csv").refused(1, &["one"]);
    folder.run("aggregate --store db --by column:k --fn nosuch:v f.csv").refused(2, &["nosuch"]);
    folder.run("load db t f.csv --format csv --key q").refused(1, &["\"q\""]);
    folder.run("load empty t f.csv --format csv --key q").refused(1, &["\"q\""]);
    folder.run("put db t k v --memory 1K").refused(2, &["memory"]);
    let long = "n".repeat(70_000);
    folder.run(&format!("aggregate --store db --table {long} --by word f.csv")).refused(1, &["name"]);
    folder.run("serve db --listen 127.0.0.1:0 --acl-file none.acl").refused(2, &["none.acl"]);
    folder.run("serve db --listen 127.0.0.1:0 --loops 0").refused(2, &["--loops"]);
    assert!(!folder.path("db").exists());
    assert_eq!(std::fs::read_dir(folder.path("empty")).unwrap().count(), 0);
    // Nor a table that would be in the way of the next attempt.
    folder.ok("put db t k v");
    folder.run("aggregate --store db --by column:k --fn sum:v f.csv").refused(1, &["one"]);
    folder.run("load db u f.csv --format csv --key q").refused(1, &["\"q\""]);
    folder.ok("aggregate --store db --by column:k --fn count f.csv");
    folder.ok("load db u f.csv --format csv --header --layout tiering");
    assert_eq!(folder.ok("get db t k"), "v\n");
}

/// Begins an aggregation that has a result and a directory aside, and waits for more input.
fn begin(folder: &Folder) -> (std::process::Child, std::process::ChildStdin) {
    let words = "aggregate --by word --memory 2M --out out.csv --temp . -";
    let arguments: Vec<&str> = words.split(' ').collect();
    let mut child = folder.command(&arguments).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // More than the pipe and a window hold, so that the command reads when this returns.
    let text: String = (0..400_000).map(|number| format!("word{number}\n")).collect();
    input.write_all(text.as_bytes()).unwrap();
    (child, input)
}

/// Whether this process ignores a signal, and with it those that it starts.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|bits| u64::from_str_radix(bits.trim(), 16).unwrap() >> (signal - 1) & 1 == 1)
}

#[test]
fn a_signal_leaves_nothing_aside() {
    use std::os::unix::process::ExitStatusExt;
    let folder = Folder::new("signals");
    for (name, signal) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        // As in work that a shell has put in the background, where the command ignores it as well.
        if is_ignored(signal) {
            continue;
        }
        let (mut child, input) = begin(&folder);
        assert!(names(&folder).iter().any(|name| name.starts_with("forebay-aggregate-")));
        assert!(Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap().success());
        let status = child.wait().unwrap();
        drop(input);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        // A shell tells 128 and the signal.
        assert_eq!((status.signal(), &said[..]), (Some(signal), ""));
        assert_eq!(names(&folder), [] as [&str; 0], "{name}");
    }
}

/// Nobody knew how much of the input was in the table by then. Where that cannot be known no number is told: "0
/// records" was, of a load that was over but for its last words.
#[test]
fn a_signal_tells_how_much_is_loaded() {
    let folder = Folder::new("load-signal");
    for (table, options, loaded) in
        [("os", "--batch 10", 20), ("memory", "--durability memory", 0), ("sorted", "--sorted", 0)]
    {
        let words = format!("load db {table} - --json {options}");
        let arguments: Vec<&str> = words.split(' ').collect();
        let mut load = folder.command(&arguments);
        let load = load.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = load.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        (10..35).for_each(|key| writeln!(input, "{key}").unwrap());
        let told = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = format!("\"acknowledged\":{loaded}}}");
        assert!(told.map(Result::unwrap).any(|line| line.ends_with(&wanted)), "{options}");
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let wanted = match table {
            "os" => "(loaded before it: 20 records)",
            _ => "(what is loaded by now is not known: look before you load again)",
        };
        assert!(said.contains(wanted), "{options}: {said:?}");
        assert!(said.contains("\"exit_code\":143") && said.lines().count() == 1, "{said:?}");
        child.wait().unwrap();
    }
    assert_eq!(folder.ok("scan db os").lines().count(), 20);
}

/// It said how many were loaded, and not that any of them may be lost: closing is what makes them durable.
#[test]
fn a_load_into_memory_that_cannot_be_closed_tells_that() {
    let folder = Folder::new("load-unclosed");
    let arguments = ["load", "db", "t", "-", "--json", "--batch", "10", "--durability", "memory"];
    let mut load = folder.command(&arguments);
    let load = load.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = load.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    (10..35).for_each(|key| writeln!(input, "{key}").unwrap());
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(told.any(|line| line.unwrap().ends_with("\"acknowledged\":20}")));
    // A directory is where closing writes a file.
    std::fs::create_dir(folder.path("db/CURRENT.tmp")).unwrap();
    writeln!(input, "{}", "x".repeat((64 << 10) + 1)).unwrap();
    drop(input);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(said.contains("CURRENT.tmp") && !said.contains("loaded before it"), "{said:?}");
}

/// It waited for ever to say so where nobody read it any more, and no signal but KILL ended it.
#[test]
fn a_signal_ends_a_load_whose_words_nobody_reads() {
    let folder = Folder::new("load-signal-unread");
    let (reader, writer) = std::io::pipe().unwrap();
    let mut filler = writer.try_clone().unwrap();
    // Until the reader is gone.
    let filling = std::thread::spawn(move || while filler.write_all(&[b'x'; 1 << 16]).is_ok() {});
    let mut load = folder.command(&["load", "db", "t", "-", "--json", "--batch", "10"]);
    let mut child = load.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(writer).spawn().unwrap();
    drop(load);
    let mut input = child.stdin.take().unwrap();
    (10..35).for_each(|key| writeln!(input, "{key}").unwrap());
    let told = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(told.map(Result::unwrap).any(|line| line.ends_with("\"acknowledged\":20}")));
    assert!(Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().unwrap().success());
    let ended = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        child.try_wait().unwrap().is_some()
    });
    child.kill().unwrap();
    drop(reader);
    filling.join().unwrap();
    assert!(ended);
}

/// Nor does it leave the databases of a benchmark.
#[test]
fn a_signal_leaves_no_database_of_a_benchmark() {
    let folder = Folder::new("bench-signal");
    let arguments = ["bench", "load-16", "--records", "5000000", "--memory", "64M", "--json"];
    let mut child = folder.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    // The first line is told by the process that runs, once it has begun.
    output.read_exact(&mut [0; 64]).unwrap();
    assert!(names(&folder).iter().any(|name| name.starts_with("forebay-bench.")));
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    child.wait().unwrap();
    assert_eq!(names(&folder), [] as [&str; 0]);
}

/// A result that was killed stayed forever; what another process still writes is left alone.
#[test]
fn the_next_result_of_a_name_clears_away_what_a_killed_one_left() {
    let folder = Folder::new("killed-part");
    let parts = || names(&folder).into_iter().filter(|name| name.ends_with(".part")).collect::<Vec<_>>();
    let (mut killed, input) = begin(&folder);
    let left = parts();
    killed.kill().unwrap();
    killed.wait().unwrap();
    drop(input);
    assert_eq!(parts(), left);
    folder.ok_on("aggregate --by word --out other.csv -", b"a\n");
    assert_eq!(parts(), left, "of another result");
    let (mut alive, input) = begin(&folder);
    assert_ne!(parts(), left);
    let of_alive = parts();
    assert_eq!(of_alive.len(), 1);
    folder.ok_on("aggregate --by word --out out.csv -", b"a\n");
    assert_eq!(parts(), of_alive);
    drop(input);
    assert!(alive.wait().unwrap().success());
    assert_eq!(parts(), [] as [&str; 0]);
}

#[test]
fn what_is_aside_has_no_name_that_outlives_a_kill() {
    let folder = Folder::new("killed-aside");
    let (mut child, input) = begin(&folder);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(input);
    for name in names(&folder).iter().filter(|name| name.starts_with("forebay-aggregate-")) {
        assert_eq!(std::fs::read_dir(folder.path(name)).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn foreign_bytes_are_told_escaped() {
    let folder = Folder::new("foreign");
    std::fs::write(folder.path("f.csv"), "a\x1b[31mred,v\n1,\x1b]0;owned\x07\n").unwrap();
    for words in [
        "aggregate --by column:q f.csv",
        "aggregate --by column:2 --fn sum:2 f.csv",
        "load db t f.csv --format csv --key q",
    ] {
        let outcome = folder.run(words);
        assert_eq!(outcome.code, 1, "{outcome:?}");
        assert!(outcome.stderr.trim_end().chars().all(|letter| !letter.is_control()), "{outcome:?}");
        let object = last_object(&folder.run(&format!("{words} --json")).stderr);
        assert_eq!((&object["type"], &object["exit_code"]), (&"error".into(), &1.into()));
        assert!(object["message"].as_str().unwrap().contains("f.csv"), "{object}");
    }
    let usage = last_object(&folder.run("get db --json").stderr);
    assert_eq!((&usage["type"], &usage["exit_code"]), (&"error".into(), &2.into()));
}

#[test]
fn shells_and_readers_of_manuals_are_served() {
    let folder = Folder::new("manuals");
    for shell in ["bash", "zsh", "fish"] {
        assert!(folder.ok(&format!("completions {shell}")).contains("savepoints"), "{shell}");
    }
    folder.ok("man pages/man1");
    for page in ["forebay.1", "forebay-load.1", "forebay-aggregate.1"] {
        let text = std::fs::read_to_string(folder.path("pages/man1").join(page)).unwrap();
        assert!(text.contains("SYNOPSIS"), "{page}");
    }
    assert_eq!(folder.ok_on("load db t - --quiet", b"a\n"), "");
    assert_eq!(folder.ok("compact db -q"), "");
}
