//! Many reads at once, by io_uring: the kernel's queue of operations. The only unsafe code of this room.
//!
//! Each thread has a ring of its own, made when it first reads many. Where the system has none or refuses it,
//! nothing is read here, and the caller reads in the usual way.
//!
//! **Invariant:** [`read`] does not return while the kernel may still write to a buffer that it was given.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

use super::ReadRequest;
use crate::process;

/// This many reads are on their way at once.
const READS_MAX: u32 = 64;

/// What the kernel says when it wants to be asked again.
const PASSING: [ErrorKind; 3] = [ErrorKind::Interrupted, ErrorKind::WouldBlock, ErrorKind::ResourceBusy];

thread_local! {
    static RING: RefCell<Ring> = const { RefCell::new(Ring::Unknown) };
}

enum Ring {
    /// Nobody asked yet.
    Unknown,
    /// Of this process. A child of a fork has its parent's queues in its memory, and would push into them.
    Open(Box<IoUring>, u32),
    /// There is none.
    Absent,
}

/// Does as many of these reads as it can and sets their outcomes. Returns, for each, whether it was done.
pub(super) fn read(requests: &mut [ReadRequest<'_>]) -> Vec<bool> {
    let mut done = vec![false; requests.len()];
    RING.with_borrow_mut(|ring| {
        let process = process::id();
        if matches!(ring, Ring::Unknown) || matches!(ring, Ring::Open(_, maker) if *maker != process) {
            *ring = IoUring::new(READS_MAX).map_or(Ring::Absent, |made| Ring::Open(Box::new(made), process));
        }
        let pairs = requests.chunks_mut(READS_MAX as usize).zip(done.chunks_mut(READS_MAX as usize));
        for (requests, done) in pairs {
            let Ring::Open(open, _) = ring else { return };
            if !read_some(open, requests, done) {
                *ring = Ring::Absent;
            }
        }
    });
    done
}

/// As many as the ring takes at once. Returns whether the ring can be used again.
fn read_some(ring: &mut IoUring, requests: &mut [ReadRequest<'_>], done: &mut [bool]) -> bool {
    debug_assert!(requests.len() == done.len() && requests.len() <= READS_MAX as usize);
    let mut pushed = 0;
    for (index, request) in requests.iter_mut().enumerate() {
        let Some(handle) = request.file.handle() else { continue };
        let Ok(bytes) = u32::try_from(request.into.len()) else { continue };
        let read = opcode::Read::new(types::Fd(handle.as_raw_fd()), request.into.as_mut_ptr(), bytes)
            .offset(request.offset)
            .build()
            .user_data(index as u64);
        // SAFETY: the file stays open and the buffer borrowed, by `requests`, until this function returns; that
        // is once every entry that the kernel took has completed: see `wait`.
        pushed += unsafe { ring.submission().push(&read) }.is_ok() as usize;
    }
    let usable = wait(ring, pushed);
    for completion in ring.completion() {
        let index = completion.user_data() as usize;
        // Short reads and errors are left to the usual way, which knows what to do about them.
        if let (Some(request), Ok(count)) = (requests.get_mut(index), usize::try_from(completion.result()))
            && count == request.into.len()
        {
            request.outcome = Ok(count);
            done[index] = true;
        }
    }
    usable
}

/// Submits what was pushed and waits until all that the kernel took has completed. Returns whether that was all.
fn wait(ring: &mut IoUring, pushed: usize) -> bool {
    loop {
        match ring.submit_and_wait(pushed) {
            Ok(_) if ring.completion().len() >= pushed => return true,
            Ok(_) => {}
            Err(error) if PASSING.contains(&error.kind()) => {}
            Err(_) => break,
        }
    }
    debug_assert!(ring.submission().len() <= pushed, "the queue has no others' reads");
    let taken = pushed - ring.submission().len();
    while ring.completion().len() < taken {
        std::thread::yield_now();
    }
    false
}
