//! Two processes and one database: one writes, the other reads beside it and follows what comes.
//!
//! The program starts itself once more, as the reader.

use std::path::Path;
use std::process::Command;

use forebay::{Database, Options};

const LAST: u32 = 20_000;

fn write(dir: &Path) -> forebay::Result<Database> {
    let db = Database::open(dir, Options::default().memory_limit(64 << 20))?;
    let numbers = db.table("numbers").open()?;
    for number in 0..=LAST {
        numbers.put(number.to_be_bytes(), number.to_string())?;
    }
    Ok(db)
}

/// Reads until the last number is there. Whatever the writer merges meanwhile, what is seen stays as it was.
fn read(dir: &Path) -> forebay::Result<()> {
    let options = Options::default().memory_limit(64 << 20).read_only(true);
    let db = Database::open(dir, options)?;
    let numbers = db.table("numbers").existing(true).open()?;
    let mut looks = 0;
    while numbers.get(LAST.to_be_bytes())?.is_none() {
        let last = db.refresh()?;
        // One record a number: all up to this one are there, and none behind it.
        assert!(last == 0 || numbers.contains_key((last as u32 - 1).to_be_bytes())?);
        assert!(!numbers.contains_key((last as u32).to_be_bytes())?);
        looks += 1;
    }
    println!("the reader has seen all {} numbers after {looks} looks", numbers.iter()?.count());
    db.close()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(dir) = std::env::args().nth(1) {
        return Ok(read(Path::new(&dir))?);
    }
    let dir = std::env::temp_dir().join(format!("forebay-readers-{}", std::process::id()));
    let first = Database::open(&dir, Options::default().memory_limit(64 << 20))?;
    first.table("numbers").open()?;
    first.close()?;
    let mut reader = Command::new(std::env::current_exe()?).arg(&dir).spawn()?;
    let db = write(&dir)?;
    reader.wait()?;
    db.close()?;
    Ok(Database::destroy(&dir)?)
}
