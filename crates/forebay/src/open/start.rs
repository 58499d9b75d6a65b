//! Background work begins: on what the log still has first, until all of it is loaded.

use std::collections::VecDeque;

use forebay_base::Result;
use forebay_env::Handle;
use forebay_store::log::recover::Extent;

use crate::background::Machines;
use crate::context::{FLUSH, may_stop_work};
use crate::engine::Engine;
use crate::open::{SURPLUS_BUFFERS, load_buffer};

/// Starts all machines, once `pending` segments of the log are loaded too.
pub(crate) fn start(engine: &Engine, pending: VecDeque<Extent>) -> Result<Vec<Handle>> {
    let (context, versions) = (&engine.context, &engine.versions);
    let buffers_max = context.buffers().count;
    let mut machines = Machines::new(&engine.background);
    for extent in pending {
        // Buffers go to lists, here, until there is room; or, where a merge rule is not known yet, more are held.
        while versions.state().sealed.len() >= buffers_max && machines.flush_some() {}
        // Nobody else is there yet who does.
        versions.lists.trash.empty(&*context.env.fs);
        has_room_for_the_log(engine)?;
        let buffer = load_buffer(&context.log_files(), &extent, &context.pool)?;
        versions.update_state(|state| state.sealed.insert(0, buffer));
    }
    if let Some(seat) = context.limit.seat() {
        // What is to be opened next needs the memory.
        let holds_too_much = || context.pool.held_bytes() > seat.share_bytes();
        while holds_too_much() && !versions.state().sealed.is_empty() && machines.flush_some() {}
    }
    Ok(machines.spawn())
}

/// Whether more of the log can be loaded: what is in memory goes to lists, or a rule is missing, which only they bring
/// who open the database. Where the disk is at fault it would all be loaded, however long it is.
fn has_room_for_the_log(engine: &Engine) -> Result<()> {
    if engine.versions.state().sealed.len() < engine.context.buffers().count + SURPLUS_BUFFERS {
        return Ok(());
    }
    let trouble = engine.context.health.trouble_at(FLUSH);
    trouble.filter(may_stop_work).map_or(Ok(()), Err)
}
