//! What ends a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::Waker;

use super::doors::Door;

/// Ends a server, from any thread. It holds nothing of the database.
#[derive(Clone)]
pub struct Stopper {
    stopping: Arc<AtomicBool>,
    doors: Arc<[Door]>,
    port: Option<Arc<Waker>>,
}

impl Stopper {
    pub(super) fn new(stopping: &Arc<AtomicBool>, doors: &Arc<[Door]>, port: Option<&Arc<Waker>>) -> Self {
        Self { stopping: Arc::clone(stopping), doors: Arc::clone(doors), port: port.cloned() }
    }

    /// Has the server answer what it has read, as long as clients take that, for some seconds at most; and end.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.doors.iter().for_each(Door::wake);
        self.port.iter().for_each(|port| drop(port.wake()));
    }
}

/// Stops all loops when one of them ends, however it does.
pub(super) struct Ends(pub(super) Stopper);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.stop();
    }
}
