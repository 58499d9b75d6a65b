//! Beside who writes: readers of the same directory, and followers of the feed.

use std::ffi::c_char;
use std::path::Path;
use std::time::Duration;

use crate::database::{Db, json, options_of};
use crate::error::ErrorOut;
use crate::kernel::{Channel, Out, fallible, plain, put};
use crate::options::Options;
use crate::table::Table;

/// `forebay_change_server`.
pub(crate) struct ChangeServer(forebay::ChangeServer);

/// `forebay_follower`.
pub(crate) struct Follower(forebay::Follower);

fallible! { ErrorOut<'_>;
    fn forebay_db_refresh(db: &Db, sequence: Out<'_, u64>) -> bool {
        put(sequence, db.0.refresh()?);
        Ok(true)
    }

    fn forebay_db_writer_stats(db: &Db, milliseconds: u64) -> *mut c_char {
        match db.0.writer_stats(Duration::from_millis(milliseconds))? {
            Some(stats) => json(&stats),
            None => Ok(std::ptr::null_mut()),
        }
    }

    fn forebay_db_keep_changes(db: &Db, bytes: u64) -> bool {
        db.0.keep_changes(bytes).map(|()| true)
    }

    fn forebay_change_server_new(db: &Db) -> Option<Box<ChangeServer>> {
        Ok(Some(Box::new(ChangeServer(db.0.change_server()))))
    }

    fn forebay_change_server_serve(server: &ChangeServer, descriptor: Channel) -> bool {
        server.0.serve(descriptor.0).map(|()| true)
    }

    fn forebay_follower_open(path: &Path, options: Option<&Options>) -> Option<Box<Follower>> {
        Ok(Some(Box::new(Follower(forebay::Follower::open(path, options_of(options))?))))
    }

    fn forebay_follower_follow(follower: &mut Follower, descriptor: Channel) -> *mut c_char {
        json(&follower.0.follow(descriptor.0)?)
    }

    fn forebay_follower_table(follower: &Follower, name: &str) -> Option<Box<Table>> {
        let asked = follower.0.database().table(name).existing(true);
        Ok(Some(Box::new(Table::open(asked)?)))
    }

    fn forebay_follower_promote(follower: Box<Follower>) -> Option<Box<Db>> {
        Ok(Some(Box::new(Db(follower.0.promote()?))))
    }

    fn forebay_follower_close(follower: Box<Follower>) -> bool {
        follower.0.close().map(|()| true)
    }
}

plain! {
    fn forebay_follower_position(follower: &Follower) -> u64 {
        follower.0.position()
    }

    fn forebay_change_server_free(server: Option<Box<ChangeServer>>) {
        drop(server);
    }
}
