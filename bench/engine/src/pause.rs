//! Waiting for a moment without taking a processor from the engine meanwhile.

use std::time::Duration;

use forebay_env::Clock;

/// What the kernel may take to wake somebody up.
const WAKING: Duration = Duration::from_micros(300);

/// Returns then: asleep until shortly before, and awake from there, as sleeping on would end too late.
pub(crate) fn until(clock: &dyn Clock, then: Duration) {
    sleep(then.saturating_sub(clock.now() + WAKING));
    while clock.now() < then {
        std::hint::spin_loop();
    }
}

#[expect(clippy::disallowed_methods, reason = "it is the bench that waits, not the database")]
fn sleep(time: Duration) {
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}
