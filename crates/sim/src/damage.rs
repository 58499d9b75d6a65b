//! Bytes that change on a disk that is at rest: a copy of it is damaged and opened. All that it answers is right, or an
//! error that names the damage.

use std::path::PathBuf;

use forebay::Durability;
use forebay_env::fs::{FaultyFs, MemoryFs};
use forebay_env::{FileSystem, Rng};

use crate::run::Run;

/// This many file operations are taken for work without end, and fail.
const OPERATIONS_MAX: u64 = 50_000;

impl Run {
    /// Damages a copy of what a crash has left of the database, and asks the copy. `in_midst` if the crash cut
    /// something short.
    pub(crate) fn ask_damaged(&self, mut dice: Rng, in_midst: bool) {
        let original = &self.databases[0];
        let mut files: Vec<(PathBuf, Vec<u8>)> = self.fs.snapshot_files().into_iter().collect();
        files.retain(|(path, _)| path.parent() == Some(original.dir()));
        let lengths: Vec<usize> = files.iter().map(|(_, bytes)| bytes.len()).collect();
        let full: Vec<usize> = (0..files.len()).filter(|&file| lengths[file] > 0).collect();
        if full.is_empty() || original.other.is_some() {
            return;
        }
        // Of some kinds there are many files, and each kind is as worth asking. Of what was told just now only the last
        // edit of the manifest tells.
        let kind = match self.was_told && dice.chance(60) {
            true => "manifest",
            false => ["manifest", "log", "list", "tree"][dice.index(4)],
        };
        let is_kind = |&file: &usize| files[file].0.extension().is_some_and(|end| end == kind);
        let of_kind: Vec<usize> = full.iter().copied().filter(is_kind).collect();
        let among = if of_kind.is_empty() || dice.chance(20) { full } else { of_kind };
        let (path, bytes) = &mut files[among[dice.index(among.len())]];
        let is_kind = |kind: &str| path.extension().is_some_and(|end| end == kind);
        // Where its end is gone, or what told that its last edit was durable, only what was done because of it tells.
        // What tells so is not synced, so it may be gone with the power; a process that dies leaves it, but where it
        // dies just before.
        let is_sealed = self.loss == Durability::Os && !self.may_fail && !self.may_forget && !in_midst;
        let what = match is_kind("manifest") {
            true => {
                let vouched = if is_sealed { bytes.len() } else { before_the_last_edit(bytes) };
                // Its front is read by all that follows; its last edits are what a crash could have torn.
                let from = if dice.chance(50) { vouched.saturating_sub(128) } else { 0 };
                flip(&mut bytes[from..vouched], &mut dice)
            }
            false => damage(bytes, &mut dice),
        };
        self.tell(|| format!("a copy with damage to {}: {what}", path.display()));
        let loses_the_end = is_kind("log");
        let fs = MemoryFs::new();
        fs.create_dir_all(original.dir()).expect("in memory");
        files.into_iter().for_each(|(path, bytes)| fs.replace_file(&path, bytes));
        let faulty = FaultyFs::new(fs);
        faulty.rule(&format!("any * from:{OPERATIONS_MAX} io-error")).expect("a rule that is well formed");
        let env = self.wall.env(faulty, dice.next_u64(), Some(&self.env));
        let mut copy = original.twin(env, original.dir(), original.model.clone());
        copy.ask_damaged(loses_the_end);
        copy.abandon();
    }
}

/// How much of a manifest something sound stands behind, by which it is known to have been durable; at least a byte.
/// Its last record may be torn.
fn before_the_last_edit(bytes: &[u8]) -> usize {
    let (mut vouched, mut last, mut next) = (0, 0, 0);
    while let Some(length) = bytes.get(next + 4..next + 8).and_then(|length| length.try_into().ok()) {
        (vouched, last, next) = (last, next, next + 8 + u32::from_le_bytes(length) as usize);
    }
    vouched.clamp(1, bytes.len())
}

/// Changes bytes, and tells how.
fn damage(bytes: &mut Vec<u8>, dice: &mut Rng) -> String {
    let at = dice.index(bytes.len());
    match dice.below(10) {
        0 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        1 => {
            let end = bytes.len().min(at + 512);
            bytes[at..end].fill(0);
            format!("zeros from {at} to {end}")
        }
        _ => flip(bytes, dice),
    }
}

fn flip(bytes: &mut [u8], dice: &mut Rng) -> String {
    let at = dice.index(bytes.len());
    bytes[at] ^= 1 << dice.below(8);
    format!("a bit of byte {at} of {}", bytes.len())
}
