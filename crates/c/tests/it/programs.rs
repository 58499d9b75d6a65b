//! Programs in C, built against the installation and run: the examples with what they print, and tests against a model.

use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;

use crate::folder;
use crate::installation::{installed, said};

/// Each test's program, and the library that it is for.
const PROGRAMS: [(&str, &str); 5] = [
    ("model", "forebay"),
    ("faults", "forebay"),
    ("features", "forebay"),
    ("threads", "forebay"),
    ("leveldb", "forebay-leveldb"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Linked {
    Shared,
    Static,
}

/// Compiles a program against the installation, as pkg-config says.
fn compile(library: &str, source: &Path, to: &Path, linked: Linked, more: &[&str]) -> Result<(), String> {
    let prefix = installed().unwrap();
    let mut asked = Command::new("pkg-config");
    asked.args(["--cflags", "--libs"]).args((linked == Linked::Static).then_some("--static"));
    asked.arg(library).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = said(&mut asked)?;
    // Both kinds lie side by side, and a linker that may choose takes the shared one.
    let flags =
        flags.split_whitespace().map(|flag| match linked == Linked::Static && flag[2..] == *library {
            true => format!("{}/lib/lib{library}.a", prefix.display()),
            false => flag.to_string(),
        });
    let run_path = format!("-Wl,-rpath,{}", prefix.join("lib").display());
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]).args(more).arg(source);
    said(cc.args(flags).arg(run_path).arg("-o").arg(to)).map(drop)
}

/// Builds every test's program in this way, and runs it: that which draws with each of the seeds.
fn run_all(linked: Linked, more: &[&str], seeds: RangeInclusive<u64>) {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("program");
    for (name, library) in PROGRAMS {
        let source = folder().join("tests/c").join(format!("{name}.c"));
        compile(library, &source, &program, linked, more).unwrap();
        for seed in if name == "model" { seeds.clone() } else { 0..=0 } {
            println!("{name} {seed} {more:?}");
            let db = place.path().join(format!("{name}-{seed}"));
            said(Command::new(&program).arg(&db).arg(seed.to_string())).unwrap();
        }
    }
}

#[test]
fn programs_run_with_the_shared_library() {
    if installed().is_some() {
        run_all(Linked::Shared, &[], 1..=3);
    }
}

#[test]
fn programs_run_with_the_static_library() {
    if installed().is_some() {
        run_all(Linked::Static, &[], 4..=4);
    }
}

/// The programs' side is compiled for it; of the library it sees all memory that is taken and given back.
#[test]
fn sanitized_programs_run() {
    const SANITIZED: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    if installed().is_none() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let source = folder().join("examples/hello.c");
    match compile("forebay", &source, &place.path().join("hello"), Linked::Shared, &SANITIZED) {
        Ok(()) => run_all(Linked::Shared, &SANITIZED, 5..=6),
        Err(reason) => eprintln!("passed over: this compiler has no sanitizers: {reason}"),
    }
}

#[test]
fn examples_print_what_they_say() {
    if installed().is_none() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("program");
    for (name, library, printed) in [
        ("hello", "forebay", "ada was born in 1815\nada\t1815\nalan\t1912\n"),
        ("batches", "forebay", "the last record has number 1001\n1: again\n2: again\n5000: not there\n"),
        ("counters", "forebay", "/ has 3 hits\n"),
        ("backup", "forebay", "ada is back: 1815\nthe copy has 0 problems: {\"files\":"),
        ("from_leveldb", "forebay-leveldb", "ada\t1815\ngrace\t1906\n"),
    ] {
        let source = folder().join("examples").join(format!("{name}.c"));
        compile(library, &source, &program, Linked::Shared, &[]).unwrap();
        let said = said(Command::new(&program).arg(place.path().join(name))).unwrap();
        assert!(said.starts_with(printed), "{name} prints\n{said}");
    }
}
