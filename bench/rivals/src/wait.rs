//! Waiting for engines that can only be asked whether they are done.

use std::time::Duration;

use forebay_bench::Failure;

pub(crate) const POLLS_PER_SECOND: u32 = 100;

/// Asks again and again.
pub(crate) fn until(mut is_done: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    while !is_done()? {
        pause();
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the engines waited for have threads of their own")]
fn pause() {
    std::thread::sleep(Duration::from_secs(1) / POLLS_PER_SECOND);
}
