//! What an opening makes of what the database says of its feed of changes:
//!
//! 1. It keeps as much of the log as is asked for, if anything is.
//! 2. Opened as a database, a copy takes writes of its own from here on: another line begins, and it follows no more.
//! 3. Opened as a follower, one that is new, or a copy that has written nothing, follows; others are refused.
//! 4. After a crash another line begins, too: who follows may have seen commits that are gone, and whose numbers are given
//!    again.
//!
//! A full disk keeps nobody from opening: what it has no room for is said before anything else comes in.

use forebay_base::{Error, Result};
use forebay_store::manifest::{AppendError, Edit, Feed, Lineage, Manifest, Superblock};

use crate::open::Reader;
use crate::options::Role;
use crate::versions::Replay;

/// See the module. Returns what could not be said for want of room.
pub(super) fn take_up_feed(
    reader: &Reader<'_>,
    superblock: &Superblock,
    replay: &mut Replay,
    manifest: &mut Manifest,
    last_sequence: u64,
) -> Result<Option<Feed>> {
    let mut feed = replay.feed.clone();
    feed.keep_bytes = reader.options.keep_changes_bytes.unwrap_or(feed.keep_bytes);
    match reader.options.role {
        Role::Follower => follow(reader, &mut feed, replay, last_sequence)?,
        Role::Own => {
            let was_copy = std::mem::take(&mut feed.lineage.is_copy);
            let (is_new, entropy) = (feed.lineage.lines.is_empty(), &reader.env.entropy);
            if is_new && feed.keep_bytes > 0 {
                feed.lineage.found(superblock.database_id, entropy(), last_sequence, is_whole(replay));
            } else if !is_new && (was_copy || reader.closed.is_none()) {
                feed.lineage.begin(entropy(), last_sequence);
            }
        }
    }
    debug_assert_eq!(
        feed.lineage.is_copy,
        reader.options.role == Role::Follower,
        "what takes writes of its own is no copy"
    );
    if feed == replay.feed {
        return Ok(None);
    }
    match append(reader, manifest, &feed, replay.next_table) {
        Err(AppendError::Refused(error)) if error.is_no_space() => return Ok(Some(feed)),
        said => said.map_err(AppendError::into_cause)?,
    }
    replay.feed = feed;
    Ok(None)
}

fn follow(reader: &Reader<'_>, feed: &mut Feed, replay: &Replay, last_sequence: u64) -> Result<()> {
    let is_blank = is_whole(replay) && last_sequence == 0 && replay.tables.values().next().is_none();
    if !feed.lineage.is_copy && !is_blank {
        return Err(Error::invalid(format!(
            "{} has taken writes of its own, so it cannot follow another database; follow with a new directory, or with a \
             checkpoint or a backup that was opened as nothing else",
            reader.files.dir.display()
        )));
    }
    if !feed.lineage.is_copy {
        feed.lineage = Lineage { is_copy: true, ..Lineage::default() };
    }
    Ok(())
}

/// Whether the log has all there ever was.
fn is_whole(replay: &Replay) -> bool {
    replay.log.flushed.1 == 0 && replay.tables.values().all(|table| table.version.files().is_empty())
}

fn append(
    reader: &Reader<'_>,
    manifest: &mut Manifest,
    feed: &Feed,
    next_table: u32,
) -> Result<(), AppendError> {
    let edit = Edit::Feed(feed.clone(), next_table);
    let told = manifest.announce(reader.files.fs, reader.files.dir, &edit);
    told.and_then(|()| manifest.append(&edit))
}
