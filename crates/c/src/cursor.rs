//! Cursors: to any key, and from there either way. The entry is lent until the cursor moves.

use crate::database::Snapshot;
use crate::error::ErrorOut;
use crate::kernel::{Out, fallible, plain, put};
use crate::scan::Entry;
use crate::table::Table;

/// `forebay_cursor`.
pub(crate) struct Cursor(forebay::Cursor);

impl Cursor {
    /// Shows the entry here, if there is one, and says whether there is.
    fn show(&self, entry: Out<'_, Entry>) -> bool {
        let Some((key, value)) = self.0.entry() else { return false };
        put(entry, Entry::lent(key, value));
        true
    }
}

fallible! { ErrorOut<'_>;
    fn forebay_cursor_new(table: &Table, snapshot: Option<&Snapshot>) -> Option<Box<Cursor>> {
        let table = table.ordered()?;
        let cursor = match snapshot {
            Some(snapshot) => snapshot.0.cursor(table),
            None => table.cursor(),
        }?;
        Ok(Some(Box::new(Cursor(cursor))))
    }

    fn forebay_cursor_first(cursor: &mut Cursor, entry: Out<'_, Entry>) -> bool {
        cursor.0.seek_to_first().map(|()| cursor.show(entry))
    }

    fn forebay_cursor_last(cursor: &mut Cursor, entry: Out<'_, Entry>) -> bool {
        cursor.0.seek_to_last().map(|()| cursor.show(entry))
    }

    fn forebay_cursor_seek(cursor: &mut Cursor, key: &[u8] [key_bytes], entry: Out<'_, Entry>) -> bool {
        cursor.0.seek(key).map(|()| cursor.show(entry))
    }

    fn forebay_cursor_seek_for_prev(
        cursor: &mut Cursor,
        key: &[u8] [key_bytes],
        entry: Out<'_, Entry>,
    ) -> bool {
        cursor.0.seek_for_prev(key).map(|()| cursor.show(entry))
    }

    fn forebay_cursor_next(cursor: &mut Cursor, entry: Out<'_, Entry>) -> bool {
        cursor.0.next().map(|()| cursor.show(entry))
    }

    fn forebay_cursor_prev(cursor: &mut Cursor, entry: Out<'_, Entry>) -> bool {
        cursor.0.prev().map(|()| cursor.show(entry))
    }
}

plain! {
    fn forebay_cursor_free(cursor: Option<Box<Cursor>>) {
        drop(cursor);
    }
}
