//! Directories of backups.

use std::ffi::c_char;
use std::path::Path;

use crate::database::{Db, json};
use crate::error::ErrorOut;
use crate::kernel::{Out, fallible, given_texts, plain, put};

/// `forebay_backups`.
pub(crate) struct Backups(forebay::Backups);

fallible! { ErrorOut<'_>;
    fn forebay_backups_open(path: &Path) -> Option<Box<Backups>> {
        Ok(Some(Box::new(Backups(forebay::Backups::open(path)?))))
    }

    fn forebay_backups_take(backups: &mut Backups, db: &Db) -> *mut c_char {
        json(&backups.0.take(&db.0)?)
    }

    fn forebay_backups_list(backups: &mut Backups) -> *mut c_char {
        json(&backups.0.list()?)
    }

    fn forebay_backups_newest(backups: &mut Backups, number: Out<'_, u64>) -> bool {
        put(number, backups.0.newest()?);
        Ok(true)
    }

    fn forebay_backups_restore(backups: &mut Backups, number: u64, path: &Path) -> bool {
        backups.0.restore(number, path).map(|()| true)
    }

    fn forebay_backups_verify(backups: &mut Backups, number: u64) -> *mut *mut c_char {
        let problems: Vec<String> = backups.0.verify(number)?.iter().map(ToString::to_string).collect();
        Ok(given_texts(&problems))
    }

    fn forebay_backups_keep(backups: &mut Backups, newest: usize) -> bool {
        backups.0.keep(newest).map(|()| true)
    }
}

plain! {
    fn forebay_backups_free(backups: Option<Box<Backups>>) {
        drop(backups);
    }
}
