//! A file that a store keeps track of: what it is known by, and what it has now.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rapidhash::v3::rapidhash_v3;

use super::reached::{Number, PRINT_BYTES, Packing, Place, Reached};
use crate::failure::Failure;
use crate::input::open::Opened;
use crate::input::unpack::Packer;

/// A file that a store keeps track of.
pub(super) struct Tracked {
    pub(super) name: String,
    /// Its path, and what its number is kept under.
    pub(super) path: PathBuf,
    number_key: Vec<u8>,
    pub(super) number: Number,
    pub(super) packing: Packing,
    /// What packs it; nothing where it is a whole that is read as it is.
    pub(super) packer: Option<Packer>,
    file: File,
    pub(super) bytes: u64,
}

impl Tracked {
    /// The file at `path`, which must be one that can be read again; `packer_of` is given its first bytes.
    #[expect(clippy::disallowed_methods, reason = "the input is the user's file, not the database's")]
    pub(super) fn open(
        path: &Path,
        packer_of: impl FnOnce(&[u8]) -> Result<Option<Packer>, Failure>,
    ) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let failed = |error: io::Error| Failure::work(format!("cannot read {name}: {error}"));
        let resolved = path.canonicalize().map_err(failed)?;
        let file = File::open(&resolved).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(Failure::work(format!(
                "{name} is no file that could be read again; --store takes none else"
            )));
        }
        let mut head = Vec::new();
        (&file).take(8).read_to_end(&mut head).map_err(failed)?;
        let packer = packer_of(&head)?;
        let packing = if packer == Some(Packer::Nothing) { Packing::Plain } else { Packing::Packed };
        let number = (about.dev(), about.ino());
        let number_key = format!("file:{}:{}", number.0, number.1).into_bytes();
        Ok(Self { name, path: resolved, number_key, number, packing, packer, file, bytes: about.len() })
    }

    /// The file itself, to be read from an offset on: its name may lead to another one by now.
    pub(super) fn open_at(&self, offset: u64) -> Result<Opened, Failure> {
        let mut file = self.file.try_clone().map_err(|error| self.failed(&error))?;
        file.seek(SeekFrom::Start(offset)).map_err(|error| self.failed(&error))?;
        Opened::of(self.name.clone(), file)
    }

    /// What it is known by besides its content.
    pub(super) fn names(&self) -> [&[u8]; 2] {
        [self.path.as_os_str().as_encoded_bytes(), &self.number_key]
    }

    /// What to keep of how far it was read.
    pub(super) fn reached(&self, place: Place) -> Result<Reached, Failure> {
        let Place { at, end, extent, state } = place;
        let bytes = if self.packing == Packing::Packed { self.bytes } else { end };
        let (packing, file, path) = (self.packing, self.number, self.path.to_string_lossy().into_owned());
        Ok(Reached { at, bytes, packing, extent, print: self.print(bytes)?, file, path, state })
    }

    pub(super) fn failed(&self, error: &io::Error) -> Failure {
        Failure::work(format!("cannot read {}: {error}", self.name))
    }

    /// A digest of both ends of the first `bytes` bytes.
    pub(super) fn print(&self, bytes: u64) -> Result<u64, Failure> {
        let mut ends = self.read(0, PRINT_BYTES.min(bytes))?;
        ends.extend(self.read(bytes.saturating_sub(PRINT_BYTES), PRINT_BYTES.min(bytes))?);
        Ok(rapidhash_v3(&ends))
    }

    pub(super) fn read(&self, from: u64, bytes: u64) -> Result<Vec<u8>, Failure> {
        let mut read = vec![0; bytes as usize];
        self.file.read_exact_at(&mut read, from).map_err(|error| self.failed(&error))?;
        Ok(read)
    }
}
