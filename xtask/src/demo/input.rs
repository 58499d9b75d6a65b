//! The demonstration's input: every line of every source file that Cargo fetched to build this very
//! project, as `crate/path:line<TAB>text`.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How much was written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written {
    /// Lines.
    pub records: u64,
    /// Bytes of them all.
    pub bytes: u64,
}

/// Writes the input to standard output.
pub fn print() -> Result<(), String> {
    write(std::io::stdout().lock()).map(|_| ())
}

/// Writes the input to a new file.
pub fn write_file(path: &Path) -> Result<Written, String> {
    let file =
        std::fs::File::create(path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
    write(file)
}

fn write(out: impl Write) -> Result<Written, String> {
    let mut out = BufWriter::with_capacity(1 << 20, out);
    let mut written = Written::default();
    for package in fetched_packages()? {
        let base = package.parent().unwrap_or(&package).to_path_buf();
        let mut files = Vec::new();
        text_files(&package, &mut files);
        files.sort();
        for file in files {
            let name = file.strip_prefix(&base).unwrap_or(&file).display().to_string();
            let Ok(text) = std::fs::read(&file) else { continue };
            write_lines(&mut out, &name, &text, &mut written)
                .map_err(|error| format!("cannot write the input: {error}"))?;
        }
    }
    out.flush().map_err(|error| format!("cannot write the input: {error}"))?;
    Ok(written)
}

fn write_lines(out: &mut impl Write, name: &str, text: &[u8], written: &mut Written) -> std::io::Result<()> {
    let mut record = Vec::new();
    for (index, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
        record.clear();
        write!(record, "{name}:{}\t", index + 1)?;
        let line = line.trim_ascii_end();
        record.extend(line.iter().map(|&byte| if byte == b'\t' { b' ' } else { byte }));
        record.push(b'\n');
        out.write_all(&record)?;
        written.records += 1;
        written.bytes += record.len() as u64;
    }
    Ok(())
}

/// The folders of the dependencies of this workspace on this machine.
fn fetched_packages() -> Result<Vec<PathBuf>, String> {
    let root = crate::workspace_root();
    let host = host_triple()?;
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .current_dir(&root)
        .args(["metadata", "--format-version", "1", "--filter-platform", &host])
        .output()
        .map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    let mut folders: Vec<PathBuf> = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|package| !package["source"].is_null())
        .filter_map(|package| package["manifest_path"].as_str())
        .filter_map(|manifest| Path::new(manifest).parent())
        .map(Path::to_path_buf)
        .collect();
    folders.sort();
    Ok(folders)
}

fn host_triple() -> Result<String, String> {
    let output =
        Command::new("rustc").arg("-vV").output().map_err(|error| format!("cannot run rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(String::from)
        .ok_or_else(|| "rustc does not tell its host".into())
}

fn text_files(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_text = path.extension().is_some_and(|ext| ext == "rs" || ext == "md" || ext == "toml");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => text_files(&path, files),
            Ok(kind) if kind.is_file() && is_text => files.push(path),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_records() {
        let mut out = Vec::new();
        let mut written = Written::default();
        write_lines(&mut out, "a/b.rs", b"x\n\n\ty\tz \r\nlast", &mut written).unwrap();
        assert_eq!(out, b"a/b.rs:1\tx\na/b.rs:2\t\na/b.rs:3\t y z\na/b.rs:4\tlast\n");
        assert_eq!((written.records, written.bytes), (4, out.len() as u64));
    }
}
