//! What becomes of a database that is dropped.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use forebay_env::Jobs;
use forebay_env::sync::Mutex;

use crate::Database;

impl Drop for Database {
    fn drop(&mut self) {
        // Whoever wants to know of errors calls `close`; nothing acknowledged depends on this. What is not in lists goes to
        // the log, whether there is to be one or not: nobody waits for a flush where a value is dropped.
        let context = &self.engine.context;
        if !Jobs::must_not_wait() || context.is_closing() {
            let _ = self.shut();
            return;
        }
        // What another database of the pool has dropped held this one: on one of the threads that step its machines, too.
        let rest = ManuallyDrop::new(Self {
            engine: Arc::clone(&self.engine),
            machines: Mutex::new(std::mem::take(&mut *self.machines.lock())),
            lock: Mutex::new(self.lock.lock().take()),
            made: self.made,
            refresher: Mutex::new(self.refresher.lock().take()),
        });
        // Without a thread for it, it stays as it is: open.
        drop(context.env.jobs.fork("forebay-close", move || drop(ManuallyDrop::into_inner(rest))));
    }
}
