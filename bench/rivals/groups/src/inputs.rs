//! The keys: drawn from so many different ones, and written to a file as [blocks](crate::blocks).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use forebay_base::hash::mix;

use crate::Failure;
use crate::args::CampaignArgs;
use crate::blocks::BLOCK_BYTES;

/// Of what keys are drawn, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Of 6 letters and more, evenly
    Words,
    /// Of 64 bits, evenly
    Numbers,
    /// Words, of which there are few
    Few,
    /// Words, the commonest most often
    Zipf,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Numbers => "numbers",
            Self::Few => "few",
            Self::Zipf => "zipf",
        }
    }
}

/// A file of keys, for as long as this lives.
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    pub(crate) key_bytes_max: usize,
}

impl Input {
    pub(crate) fn make(args: &CampaignArgs) -> Result<Self, Failure> {
        let path = args.dir.join(format!("groups-{}.keys", std::process::id()));
        let mut input = Self { path, key_bytes_max: 0 };
        input.write(args).map_err(|error| format!("{}: {error}", input.path.display()))?;
        Ok(input)
    }

    fn write(&mut self, args: &CampaignArgs) -> std::io::Result<()> {
        let mut out = BufWriter::with_capacity(BLOCK_BYTES, File::create(&self.path)?);
        let groups = args.groups.get();
        let (mut key, mut filled) = (Vec::new(), 0);
        for add in 0..args.adds.get() {
            let draw = mix(add ^ 0x5eed);
            let group = match args.kind {
                // By the inverse of the sum of 1/rank.
                Kind::Zipf => {
                    ((groups as f64).powf((draw >> 11) as f64 / (1u64 << 53) as f64) as u64).min(groups - 1)
                }
                _ => draw % groups,
            };
            key.clear();
            match (args.kind, args.key_bytes) {
                (Kind::Numbers, _) => key.extend_from_slice(&mix(group).to_le_bytes()),
                (_, Some(key_bytes)) => letters(group, key_bytes.into(), &mut key),
                (_, None) => word(group, &mut key),
            }
            if filled + 1 + key.len() > BLOCK_BYTES {
                pad(&mut out, filled)?;
                filled = 0;
            }
            out.write_all(&[key.len() as u8])?;
            out.write_all(&key)?;
            filled += 1 + key.len();
            self.key_bytes_max = self.key_bytes_max.max(key.len());
        }
        pad(&mut out, filled)?;
        out.flush()
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a file, which need not be there.
pub(crate) fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            eprintln!("{} stays: {error}", path.display());
        }
        _ => {}
    }
}

fn pad(out: &mut impl Write, filled: usize) -> std::io::Result<()> {
    out.write_all(&vec![0; BLOCK_BYTES - filled])
}

/// A word of 6 to 60 letters, whose length is binomial.
fn word(group: u64, key: &mut Vec<u8>) {
    let longer = (0..54u64).filter(|trial| mix(group ^ trial << 40) % 100 < 8).count();
    letters(group, 6 + longer, key);
}

fn letters(group: u64, count: usize, key: &mut Vec<u8>) {
    let mut bits = mix(group);
    for _ in 0..count {
        key.push(b'a' + (bits % 26) as u8);
        bits = mix(bits);
    }
}
