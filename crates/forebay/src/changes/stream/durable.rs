//! What a stream tells is durable before it is told, whoever has written it.

use forebay_base::{Error, Result};
use forebay_env::Access;
use forebay_store::manifest::Current;
use forebay_store::names;

use crate::changes::Moment;
use crate::context::Context;

/// Makes durable what there is at a moment.
pub(super) fn make_durable(context: &Context, moment: &Moment) -> Result<()> {
    if let Some(log) = &context.log {
        log.sync_to(moment.last)?;
        debug_assert!(log.durable_sequence() >= moment.last, "what was accepted is durable");
        return Ok(());
    }
    // Another process writes it, and may not have come to that yet. What is in no file of the log by now is flushed, and
    // durable since.
    let (fs, dir) = (&*context.env.fs, &*context.dir);
    let current = Current::read(fs, dir).map_err(Error::or_missing)?;
    let buffers = [&moment.state.active].into_iter().chain(&moment.state.sealed);
    let segments =
        buffers.filter(|buffer| !buffer.is_empty()).map(|buffer| names::log(dir, buffer.segment()));
    for path in [names::manifest(dir, current.manifest)].into_iter().chain(segments) {
        match fs.open_read(&path, Access::Buffered) {
            Err(error) if error.is_not_found() => {}
            file => file?.sync()?,
        }
    }
    fs.sync_dir(dir)
}
