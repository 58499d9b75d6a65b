//! An installation in a folder of its own, made once by the script that `make install-c` runs, and what is in it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::folder;

/// What a command says, or what it says of its failure.
pub(crate) fn said(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => {
            Err(format!("{command:?}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr)))
        }
    }
}

/// Whether the machine has a command; if not, the test says what it goes without.
pub(crate) fn has(command: &str) -> bool {
    let is_there = Command::new(command).arg("--version").output().is_ok();
    if !is_there {
        eprintln!("passed over: there is no `{command}` here");
    }
    is_there
}

/// Where it is installed, if there is what programs are built with.
pub(crate) fn installed() -> Option<&'static Path> {
    static INSTALLED: LazyLock<PathBuf> = LazyLock::new(|| {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
        let _ = std::fs::remove_dir_all(&prefix);
        let library = std::env::current_exe().unwrap().with_file_name("libforebay_c.a");
        let script = folder().join("install/install.sh");
        said(Command::new("sh").arg(script).arg(library).arg(&prefix)).unwrap();
        prefix
    });
    (has("cc") && has("pkg-config")).then(|| INSTALLED.as_path())
}

/// Every call of a header is a symbol of its library, with the version's name, and nothing else is.
#[test]
fn libraries_have_their_symbols_and_a_soname() {
    let Some(prefix) = installed() else { return };
    if !has("nm") || !has("readelf") {
        return;
    }
    let (major_minor, _) = env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap();
    let version = format!("FOREBAY_{}", major_minor.replace('.', "_"));
    for (name, header, start) in
        [("forebay", "forebay.h", "forebay_"), ("forebay-leveldb", "leveldb/c.h", "leveldb_")]
    {
        let library = prefix.join(format!("lib/lib{name}.so"));
        let listed = said(Command::new("nm").args(["--dynamic", "--defined-only"]).arg(&library)).unwrap();
        let symbols: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next_back()).collect();
        let header = std::fs::read_to_string(folder().join("include").join(header)).unwrap();
        let calls = symbols.iter().filter(|symbol| **symbol != version);
        let mut count = 0;
        for symbol in calls {
            let call = symbol.strip_suffix(&format!("@@{version}")).unwrap_or_else(|| panic!("{symbol}"));
            assert!(call.starts_with(start) && header.contains(&format!("{call}(")), "{symbol}");
            count += 1;
        }
        let words = header.split('(').filter_map(|before| before.split([' ', '*', '\n']).next_back());
        let is_call = |word: &&str| word.starts_with(start) && !word.contains(')');
        assert_eq!(count, words.filter(is_call).count(), "calls of {name}");
        let dynamic = said(Command::new("readelf").arg("--dynamic").arg(&library)).unwrap();
        assert!(dynamic.contains(&format!("[lib{name}.so.{major_minor}]")), "{dynamic}");
    }
}

/// The project of the examples finds it by CMake, and its programs run.
#[test]
fn cmake_finds_it() {
    let Some(prefix) = installed() else { return };
    if !has("cmake") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let build = place.path().join("build");
    let found = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(folder().join("examples")).arg("-B").arg(&build).arg(found);
    said(&mut cmake).unwrap();
    said(Command::new("cmake").arg("--build").arg(&build)).unwrap();
    for program in ["hello", "hello_static", "batches", "counters", "backup", "from_leveldb"] {
        let db = place.path().join(program);
        said(Command::new(build.join(program)).arg(&db)).unwrap();
    }
}
