//! Iterators: cursors that keep their error until they are asked for it.

use std::ffi::c_char;

use forebay::{Cursor, Error, Result};

use super::database::LevelDb;
use super::options::ReadOptions;
use crate::kernel::{Out, fallible, plain, put};
use crate::outcome::TextOut;

/// `leveldb_iterator_t`.
pub(super) struct LevelIterator {
    cursor: Result<Cursor>,
    /// Why the last move failed, if it did.
    fault: Option<Error>,
}

impl LevelIterator {
    /// Where it cannot be made, it is one that is never valid.
    fn step(&mut self, step: impl FnOnce(&mut Cursor) -> Result<()>) {
        if let Ok(cursor) = &mut self.cursor {
            self.fault = step(cursor).err();
        }
    }

    fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.cursor.as_ref().ok().and_then(Cursor::entry)
    }
}

/// Where bytes are, and their number, which is 0 where there are none.
fn shown(bytes: Option<&[u8]>, length: Out<'_, usize>) -> *const c_char {
    put(length, bytes.map_or(0, <[u8]>::len));
    bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast())
}

plain! {
    fn leveldb_create_iterator(db: &LevelDb, options: Option<&ReadOptions>) -> Option<Box<LevelIterator>> {
        let cursor = match options.and_then(|options| options.snapshot.as_ref()) {
            Some(snapshot) => snapshot.cursor(&db.table),
            None => db.table.cursor(),
        };
        let fault = cursor.as_ref().err().cloned();
        Some(Box::new(LevelIterator { cursor, fault }))
    }

    fn leveldb_iter_destroy(iterator: Option<Box<LevelIterator>>) {
        drop(iterator);
    }

    fn leveldb_iter_valid(iterator: &LevelIterator) -> u8 {
        iterator.entry().is_some().into()
    }

    fn leveldb_iter_seek_to_first(iterator: &mut LevelIterator) {
        iterator.step(Cursor::seek_to_first);
    }

    fn leveldb_iter_seek_to_last(iterator: &mut LevelIterator) {
        iterator.step(Cursor::seek_to_last);
    }

    fn leveldb_iter_seek(iterator: &mut LevelIterator, key: &[u8] [key_bytes]) {
        iterator.step(|cursor| cursor.seek(key));
    }

    fn leveldb_iter_next(iterator: &mut LevelIterator) {
        iterator.step(Cursor::next);
    }

    fn leveldb_iter_prev(iterator: &mut LevelIterator) {
        iterator.step(Cursor::prev);
    }

    fn leveldb_iter_key(iterator: &LevelIterator, key_bytes: Out<'_, usize>) -> *const c_char {
        shown(iterator.entry().map(|(key, _)| key), key_bytes)
    }

    fn leveldb_iter_value(iterator: &LevelIterator, value_bytes: Out<'_, usize>) -> *const c_char {
        shown(iterator.entry().map(|(_, value)| value), value_bytes)
    }
}

fallible! { TextOut<'_>;
    fn leveldb_iter_get_error(iterator: &LevelIterator) {
        iterator.fault.clone().map_or(Ok(()), Err)
    }
}
