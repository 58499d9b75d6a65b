//! Which machine an [executor](super::Executor)'s thread steps next. It takes no lock and looks at no clock.
//!
//! Machines belong to owners, which have their turns one after the other: who has many machines, or much to do, gets no
//! more turns than others. What a timer has woken comes before, because it was due at that time, but has one of two turns where
//! others are ready: there may always be something due. An owner at [leisure](Haste::Leisure) gets a turn in
//! [`LEISURE_TURNS`], or where nobody else wants one.
//!
//! **Invariant:** a machine is in one place: ready, resting, or out with whoever steps it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use super::bell::Bell;
use super::{Haste, Machine};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Which threads step a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Those of normal priority.
    Prompt,
    /// Those that yield to others.
    Yielding,
}

pub(super) const CLASSES: [Class; 2] = [Class::Prompt, Class::Yielding];
/// Of this many turns one is for owners at leisure.
const LEISURE_TURNS: u64 = 8;
/// Timers of machines that were woken before stay until they are this many for each machine.
const STALE_TIMERS_MAX: usize = 4;

/// What an owner's machines have in common.
pub(super) struct Turns {
    pub(super) bell: Arc<Bell>,
    /// How many of them rest. Counted before the last look at the bell's epoch, so that whoever rings it sees them.
    resting: AtomicUsize,
}

impl Turns {
    pub(super) fn new(bell: Arc<Bell>) -> Self {
        Self { bell, resting: AtomicUsize::new(0) }
    }

    pub(super) fn any_rests(&self) -> bool {
        self.resting.load(Ordering::SeqCst) > 0
    }
}

/// What a machine does until its next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    None,
    UntilWoken,
    /// Or until woken.
    Until(Duration),
}

/// A machine with its turn.
pub(super) struct Turn {
    pub(super) id: u64,
    pub(super) machine: Box<dyn Machine>,
    pub(super) turns: Arc<Turns>,
}

/// Where a machine is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Ready,
    Out,
    Resting,
}

struct Slot {
    owner: u64,
    name: String,
    class: Class,
    turns: Arc<Turns>,
    machine: Option<Box<dyn Machine>>,
    place: Place,
    /// Tells the timer of this rest from those before.
    rests: u64,
}

#[derive(Default)]
struct Owner {
    label: String,
    haste: Haste,
    is_gone: bool,
    machines: Vec<u64>,
    /// By class: those that are ready, and whether the owner waits for a turn.
    ready: [VecDeque<u64>; 2],
    is_queued: [bool; 2],
}

#[derive(Default)]
pub(super) struct Queue {
    next_id: u64,
    owners: BTreeMap<u64, Owner>,
    slots: BTreeMap<u64, Slot>,
    /// By class: machines that a timer has woken.
    due: [VecDeque<u64>; 2],
    /// By class: whether the last turn was one of those.
    was_due: [bool; 2],
    /// By class: owners who want a turn, those in haste and those at leisure.
    rings: [[VecDeque<u64>; 2]; 2],
    taken: [u64; 2],
    timers: BinaryHeap<Reverse<(Duration, u64, u64)>>,
}

impl Queue {
    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Makes room for an owner's machines.
    pub(super) fn add_owner(&mut self, label: &str) -> u64 {
        let id = self.new_id();
        self.owners.insert(id, Owner { label: label.to_owned(), ..Owner::default() });
        id
    }

    /// The owner begins no machine any more. It goes once the last that it has is gone.
    pub(super) fn remove_owner(&mut self, id: u64) {
        self.owners.get_mut(&id).into_iter().for_each(|owner| owner.is_gone = true);
        self.forget_owner(id);
    }

    fn forget_owner(&mut self, id: u64) {
        if self.owners.get(&id).is_some_and(|owner| owner.is_gone && owner.machines.is_empty()) {
            self.owners.remove(&id);
        }
    }

    pub(super) fn set_haste(&mut self, id: u64, haste: Haste) {
        let Some(owner) = self.owners.get_mut(&id) else { return };
        owner.haste = haste;
        // Who has waited at leisure does so no longer.
        for (rings, _) in self.rings.iter_mut().zip(owner.is_queued).filter(|(_, is_queued)| *is_queued) {
            rings.iter_mut().for_each(|ring| ring.retain(|queued| *queued != id));
            rings[haste as usize].push_back(id);
        }
    }

    /// Takes in a machine, which is ready.
    pub(super) fn add(
        &mut self,
        owner: u64,
        name: &str,
        turns: &Arc<Turns>,
        machine: Box<dyn Machine>,
    ) -> u64 {
        let id = self.new_id();
        let class = if machine.yields() { Class::Yielding } else { Class::Prompt };
        let (name, turns) = (name.to_owned(), Arc::clone(turns));
        let machine = Some(machine);
        self.owners.get_mut(&owner).into_iter().for_each(|owner| owner.machines.push(id));
        self.slots.insert(id, Slot { owner, name, class, turns, machine, place: Place::Out, rests: 0 });
        self.make_ready(id);
        id
    }

    pub(super) fn holds(&self, id: u64) -> bool {
        self.slots.contains_key(&id)
    }

    pub(super) fn has_ready(&self, class: Class) -> bool {
        let class = class as usize;
        !self.due[class].is_empty() || self.rings[class].iter().any(|ring| !ring.is_empty())
    }

    /// The machine whose turn it is.
    pub(super) fn take(&mut self, class: Class) -> Option<Turn> {
        let class = class as usize;
        let next = if self.was_due[class] { self.take_next(class) } else { None };
        let due = if next.is_none() { self.due[class].pop_front() } else { None };
        self.was_due[class] = due.is_some();
        let id = next.or(due).or_else(|| self.take_next(class))?;
        let slot = self.slots.get_mut(&id)?;
        debug_assert!(slot.place == Place::Ready, "what waits for a turn is ready");
        slot.place = Place::Out;
        Some(Turn { id, machine: slot.machine.take()?, turns: Arc::clone(&slot.turns) })
    }

    /// Of the owner whose turn it is, the machine whose turn it is.
    fn take_next(&mut self, class: usize) -> Option<u64> {
        self.taken[class] += 1;
        let [hasty, leisurely] = &mut self.rings[class];
        let is_for_leisure = self.taken[class].is_multiple_of(LEISURE_TURNS);
        let rings = if is_for_leisure { [leisurely, hasty] } else { [hasty, leisurely] };
        let id = rings.into_iter().find_map(VecDeque::pop_front)?;
        let owner = self.owners.get_mut(&id)?;
        let next = owner.ready[class].pop_front();
        owner.is_queued[class] = !owner.ready[class].is_empty();
        if owner.is_queued[class] {
            self.rings[class][owner.haste as usize].push_back(id);
        }
        next
    }

    /// Takes a machine back that goes on, or that rests unless something has changed since the bell's epoch was `seen`.
    pub(super) fn put_back(&mut self, turn: Turn, rest: Rest, seen: u64) {
        let Turn { id, machine, turns } = turn;
        let Some(slot) = self.slots.get_mut(&id) else { return };
        debug_assert!(slot.place == Place::Out, "who steps a machine has it");
        slot.machine = Some(machine);
        if rest == Rest::None {
            return self.make_ready(id);
        }
        turns.resting.fetch_add(1, Ordering::SeqCst);
        slot.place = Place::Resting;
        slot.rests += 1;
        if turns.bell.epoch() != seen {
            return self.make_ready(id);
        }
        if let Rest::Until(deadline) = rest {
            let rests = slot.rests;
            self.timers.push(Reverse((deadline, id, rests)));
            self.forget_stale_timers();
        }
    }

    /// Forgets a machine that is out.
    pub(super) fn remove(&mut self, id: u64) -> Option<u64> {
        let slot = self.slots.remove(&id)?;
        debug_assert!(slot.place == Place::Out, "a machine ends in a turn");
        let owner = self.owners.get_mut(&slot.owner);
        owner.into_iter().for_each(|owner| owner.machines.retain(|machine| *machine != id));
        self.forget_owner(slot.owner);
        Some(slot.owner)
    }

    /// All machines of an owner that rest are ready. There may be very many of others.
    pub(super) fn wake(&mut self, owner: u64) {
        let Some(machines) = self.owners.get_mut(&owner).map(|owner| std::mem::take(&mut owner.machines))
        else {
            return;
        };
        for &id in &machines {
            if self.slots.get(&id).is_some_and(Slot::rests) {
                self.make_ready(id);
            }
        }
        if let Some(owner) = self.owners.get_mut(&owner) {
            owner.machines = machines;
        }
    }

    fn make_ready(&mut self, id: u64) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        slot.leave_rest();
        let class = slot.class as usize;
        let Some(owner) = self.owners.get_mut(&slot.owner) else { return };
        owner.ready[class].push_back(id);
        if !std::mem::replace(&mut owner.is_queued[class], true) {
            self.rings[class][owner.haste as usize].push_back(slot.owner);
        }
    }

    /// Machines whose time has come are due.
    pub(super) fn fire(&mut self, now: Duration) {
        while let Some(&Reverse((deadline, id, rests))) = self.timers.peek() {
            if deadline > now && self.is_set(id, rests) {
                return;
            }
            self.timers.pop();
            if let Some(slot) = self.slots.get_mut(&id).filter(|slot| slot.rests() && slot.rests == rests) {
                slot.leave_rest();
                self.due[slot.class as usize].push_back(id);
            }
        }
    }

    /// When the next machine is due.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.timers.peek().map(|Reverse((deadline, ..))| *deadline)
    }

    fn is_set(&self, id: u64, rests: u64) -> bool {
        self.slots.get(&id).is_some_and(|slot| slot.rests() && slot.rests == rests)
    }

    fn forget_stale_timers(&mut self) {
        if self.timers.len() > STALE_TIMERS_MAX * self.slots.len() {
            let timers = std::mem::take(&mut self.timers);
            self.timers =
                timers.into_iter().filter(|&Reverse((_, id, rests))| self.is_set(id, rests)).collect();
        }
    }

    /// Whose machine it is, and its name.
    pub(super) fn name(&self, id: u64) -> Option<(String, String)> {
        let slot = self.slots.get(&id)?;
        Some((self.owners.get(&slot.owner)?.label.clone(), slot.name.clone()))
    }

    /// How many machines wait for a thread, and how many for something to do.
    pub(super) fn counts(&self) -> (usize, usize) {
        let count = |place| self.slots.values().filter(|slot| slot.place == place).count();
        (count(Place::Ready), count(Place::Resting))
    }
}

impl Slot {
    fn rests(&self) -> bool {
        self.place == Place::Resting
    }

    fn leave_rest(&mut self) {
        if self.rests() {
            let resting = self.turns.resting.fetch_sub(1, Ordering::SeqCst);
            debug_assert!(resting > 0, "what rests was counted");
        }
        self.place = Place::Ready;
    }
}
